// How the agent connects to the coordinator: its address and credential, and the dial-back connections.
import { type AttachDialer, createAttachDialer } from './attach/attach-dialer.ts'
import { type AgentConfig, readCoordinatorUrl, readToken } from './config.ts'
import type { TransferDialer } from './files/transfer-dialer.ts'
import { createPortDialer } from './ports/port-dialer.ts'
import { createProxySelector, type SelectProxy } from './tunnel/proxy.ts'
import { createStreamDialer, type StreamDialer } from './tunnel/stream-dialer.ts'
import { createTransferDialer } from './tunnel/transfer-dialer.ts'
import type { WebSocketDialer } from './tunnel/websocket-dialer.ts'

/** The address and the credential are read for each attempt: changing them needs no restart. */
export type CoordinatorAccess = {
  boxId: string
  readUrl(): Promise<string>
  readToken(): Promise<string>
  selectProxy: SelectProxy
}

export type CoordinatorConnections = {
  transferDialer: TransferDialer
  attachDialer: AttachDialer
  portDialer: WebSocketDialer
  streamDialer: StreamDialer
  /** Closes the dial-back connections, except those of transfers. */
  close(): void
}

export async function createCoordinatorAccess(config: AgentConfig): Promise<CoordinatorAccess> {
  const { boxId, stateDir, coordinatorUrl } = config
  return {
    boxId,
    readUrl: () => readCoordinatorUrl(stateDir, coordinatorUrl),
    readToken: () => readToken(stateDir),
    selectProxy: await createProxySelector(),
  }
}

export function createCoordinatorConnections(access: CoordinatorAccess): CoordinatorConnections {
  const attachDialer = createAttachDialer(access)
  const portDialer = createPortDialer(access)
  const streamDialer = createStreamDialer(access)
  return {
    transferDialer: createTransferDialer(access),
    attachDialer,
    portDialer,
    streamDialer,
    close() {
      streamDialer.close()
      attachDialer.close()
      portDialer.close()
    },
  }
}
