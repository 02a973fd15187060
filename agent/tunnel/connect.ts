// Opens the tunnel's WebSocket to the coordinator, and serves the routes on it: one attempt, and the connection it results in.

import type { IncomingMessage } from 'node:http'
import type { WebSocket } from 'ws'
import { createNonce, verifyProof } from '../../shared/coordinator-proof.ts'
import {
  AGENT_VERSION_HEADER,
  BOX_HEADER,
  INSTANCE_HEADER,
  NONCE_HEADER,
  PREVIOUS_PROTOCOL_VERSION,
  PROOF_HEADER,
  PROTOCOL_HEADER,
  PROTOCOL_VERSION,
  TUNNEL_PATH,
} from '../../shared/protocol.ts'
import { MAX_MESSAGE_BYTES } from '../../shared/tunnel-messages.ts'
import { agentVersion } from '../version.ts'
import type { DisconnectReason } from './disconnect-reason.ts'
import type { SelectProxy } from './proxy.ts'
import { readRejection } from './read-rejection.ts'
import { type ServeOptions, serveConnection } from './serve-connection.ts'
import { openWebSocket } from './websocket.ts'

export type ConnectOptions = ServeOptions & {
  /** The coordinator's URL, without a trailing slash. */
  url: string
  boxId: string
  token: string
  instanceId: string
  handshakeTimeoutMs: number
  /** Further headers. */
  headers?: Readonly<Record<string, string>>
  selectProxy: SelectProxy
  /** In the PEM format. The coordinator must prove that it has the private key. Default: no proof is required. */
  coordinatorKey?: string | undefined
}

export type Connection = {
  bytesRead(): number
  ping(): void
  /** Starts the closing handshake. */
  close(): void
  /** Closes immediately. */
  terminate(reason: string): void
  closed: Promise<DisconnectReason>
}

export type ConnectResult = { connection: Connection } | { failed: DisconnectReason }

const WITHOUT_PROOF =
  'The server at the URL of the coordinator did not prove that it has the key of the coordinator. ' +
  'If the coordinator has a new key or an earlier version, install the agent again.'

/** One attempt, which uses the previous version of the protocol where the coordinator does not accept this one. Never rejects. */
export async function connect(options: ConnectOptions, signal: AbortSignal): Promise<ConnectResult> {
  const result = await connectWithVersion(options, PROTOCOL_VERSION, signal)
  if (!('failed' in result) || result.failed.status !== 426 || signal.aborted) return result
  return connectWithVersion(options, PREVIOUS_PROTOCOL_VERSION, signal)
}

function connectWithVersion(
  options: ConnectOptions,
  protocolVersion: number,
  signal: AbortSignal,
): Promise<ConnectResult> {
  const { boxId, coordinatorKey } = options
  const nonce = createNonce()
  const isProven = (response: IncomingMessage, code: string) =>
    coordinatorKey === undefined ||
    verifyProof(
      { boxId, nonce, status: response.statusCode ?? 0, code },
      response.headers[PROOF_HEADER],
      coordinatorKey,
    )
  const ws = openWebSocket(options.url, TUNNEL_PATH, {
    headers: {
      ...options.headers,
      authorization: `Bearer ${options.token}`,
      [BOX_HEADER]: boxId,
      ...(coordinatorKey !== undefined && { [NONCE_HEADER]: nonce }),
      [PROTOCOL_HEADER]: String(protocolVersion),
      [INSTANCE_HEADER]: options.instanceId,
      [AGENT_VERSION_HEADER]: agentVersion,
    },
    handshakeTimeoutMs: options.handshakeTimeoutMs,
    maxMessageBytes: MAX_MESSAGE_BYTES,
    selectProxy: options.selectProxy,
  })
  return new Promise((resolve) => {
    const onAbort = () => ws.terminate()
    signal.addEventListener('abort', onAbort, { once: true })
    let bytesRead = () => 0
    let isSettled = false
    const settle = (result: ConnectResult) => {
      isSettled = true
      signal.removeEventListener('abort', onAbort)
      resolve(result)
    }
    ws.on('upgrade', (response) => {
      if (isProven(response, '')) {
        bytesRead = () => response.socket.bytesRead
        return
      }
      settle({ failed: { reason: WITHOUT_PROOF } })
      ws.terminate()
    })
    ws.on('unexpected-response', (_request, response) => {
      const { socket } = response
      void readRejection(response, options.handshakeTimeoutMs).then((rejection) => {
        // A proxy keeps the connection open for another request, and request.destroy() has no effect after the response.
        socket.destroy()
        const { reason, status, code = '' } = rejection
        // Of a rejection without a proof, only what a person reads is kept.
        settle({ failed: isProven(response, code) ? rejection : { reason, ...(status && { status }) } })
      })
    })
    ws.on('error', (error) => {
      if (!isSettled) settle({ failed: { reason: error.message } })
    })
    ws.on('open', () =>
      settle({ connection: createConnection(ws, options, protocolVersion, () => bytesRead()) }),
    )
  })
}

function createConnection(
  ws: WebSocket,
  options: ServeOptions,
  protocolVersion: number,
  bytesRead: () => number,
): Connection {
  let closeReason: string | undefined
  const terminate = (reason: string) => {
    closeReason ??= reason
    ws.terminate()
  }
  serveConnection(ws, options, protocolVersion, (reason) => {
    // The coordinator has sent its close message, and the answer is under way.
    if (ws.readyState !== ws.CLOSING) terminate(reason)
  })
  const closed = new Promise<DisconnectReason>((resolve) => {
    ws.once('close', (code, data) => {
      const after = code === 1012 ? parseReconnectAfter(data) : undefined
      resolve({
        reason: closeReason ?? `closed with code ${code}`,
        ...(after === undefined ? {} : { reconnectAfterMs: after }),
      })
    })
  })
  return {
    bytesRead,
    ping: () => ws.ping(),
    close: () => ws.close(1001),
    terminate,
    closed,
  }
}

/** A stopping coordinator sends the reconnect delay in the reason of the close frame. */
function parseReconnectAfter(data: Buffer): number | undefined {
  try {
    const { reconnectAfterMs } = JSON.parse(data.toString()) as { reconnectAfterMs?: unknown }
    return typeof reconnectAfterMs === 'number' && reconnectAfterMs >= 0 ? reconnectAfterMs : undefined
  } catch {
    return undefined
  }
}
