// Relays the bytes of one connection between the WebSocket of a client and the agent.
import type { Duplex } from 'node:stream'
import { systemClock } from '../../shared/clock.ts'
import { CLOSE_CODES, getCloseCode } from '../../shared/close-codes.ts'
import { ApiError } from '../../shared/errors.ts'
import { joinConnections } from '../../shared/join-connections.ts'
import { TcpOverWebSocket } from '../../shared/tcp-over-websocket.ts'
import { createTokenBuckets } from '../base/token-buckets.ts'
import type { RouteInput, RouteSchemas } from '../http/route.ts'
import { acceptWebSocket } from '../http/websocket.ts'
import type { AcquiredBox } from './acquire-box.ts'
import { CONNECTION_MESSAGES } from './connect-to-port.ts'
import type { EdgeContext } from './context.ts'

/**
 * Accepts the client's WebSocket, and relays in the background until the connection ends.
 * @param record records the connection before it is accepted
 */
export type ConnectionRelay = (
  input: Pick<RouteInput<RouteSchemas>, 'request' | 'reply' | 'actor'>,
  agent: Duplex,
  acquired: Pick<AcquiredBox, 'signal'>,
  record: () => Promise<void>,
) => Promise<void>

export function createConnectionRelay({ closing }: Pick<EdgeContext, 'closing'>): ConnectionRelay {
  const messages = createTokenBuckets(systemClock, CONNECTION_MESSAGES)
  return async ({ request, reply, actor }, agent, { signal }, record) => {
    const accept = async () => {
      await record()
      return acceptWebSocket(request, reply)
    }
    const ws = await accept().catch((error: unknown) => {
      agent.destroy()
      throw error
    })
    const client = new TcpOverWebSocket(ws, {
      respondsToPings: true,
      countMessage: () => messages.spend(actor.userId ?? actor.credential.id, 1),
    })
    abortWith(client, closing, () => [CLOSE_CODES.stopping, ''])
    abortWith(client, signal, (reason) =>
      reason instanceof ApiError ? [getCloseCode(reason), reason.code] : [CLOSE_CODES.failed, ''],
    )
    joinConnections(client, agent)
  }
}

/** @param toClose returns the code and the reason of the close message */
function abortWith(
  connection: TcpOverWebSocket,
  signal: AbortSignal,
  toClose: (reason: unknown) => [code: number, reason: string],
): void {
  const onAbort = () => connection.abort(...toClose(signal.reason))
  signal.addEventListener('abort', onAbort, { once: true })
  connection.once('close', () => signal.removeEventListener('abort', onAbort))
  if (signal.aborted) onAbort()
}
