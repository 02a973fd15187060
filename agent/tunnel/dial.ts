// One attempt to reach the coordinator, and the connection it becomes.
import type { Duplex } from 'node:stream'
import type { WebSocket } from 'ws'
import {
  AGENT_VERSION,
  AGENT_VERSION_HEADER,
  BOX_HEADER,
  INSTANCE_HEADER,
  PROTOCOL_HEADER,
  PROTOCOL_VERSION,
  RECONNECT_AFTER_HEADER,
  TUNNEL_PATH,
} from '../../shared/protocol.ts'
import { websocketDuplex } from '../../shared/websocket-duplex.ts'
import { openWebSocket } from './websocket.ts'

export type DialOptions = {
  /** The coordinator's http(s) URL. */
  url: string
  boxId: string
  token: string
  instanceId: string
  handshakeTimeoutMs: number
}

/** Why an attempt or a connection ended. `status` is the HTTP status of a refusal. */
export type Disconnect = { reason: string; status?: number; reconnectAfterMs?: number }

export type Connection = {
  /** The bytes of the tunnel's HTTP/2. */
  duplex: Duplex
  bytesRead(): number
  ping(): void
  /** Says goodbye and ends; `terminate` ends at once. */
  close(): void
  terminate(reason: string): void
  closed: Promise<Disconnect>
}

export type DialResult = { connection: Connection } | { refused: Disconnect }

/** The largest message taken from the coordinator: HTTP/2 frames are cut to 256 KiB, and travel a few together. */
const MAX_MESSAGE_BYTES = 4 * 1024 * 1024

/** Dials once. Never rejects: what went wrong is in `refused`. */
export function dial(options: DialOptions, signal: AbortSignal): Promise<DialResult> {
  const ws = openWebSocket(tunnelUrl(options.url), {
    headers: {
      authorization: `Bearer ${options.token}`,
      [BOX_HEADER]: options.boxId,
      [PROTOCOL_HEADER]: String(PROTOCOL_VERSION),
      [INSTANCE_HEADER]: options.instanceId,
      [AGENT_VERSION_HEADER]: AGENT_VERSION,
    },
    handshakeTimeoutMs: options.handshakeTimeoutMs,
    maxMessageBytes: MAX_MESSAGE_BYTES,
  })
  return new Promise((resolve) => {
    const abort = () => ws.terminate()
    signal.addEventListener('abort', abort, { once: true })
    let bytesRead = () => 0
    let settled = false
    const settle = (result: DialResult) => {
      settled = true
      signal.removeEventListener('abort', abort)
      resolve(result)
    }
    ws.on('upgrade', (response) => {
      bytesRead = () => response.socket.bytesRead
    })
    ws.on('unexpected-response', (request, response) => {
      const after = Number(response.headers[RECONNECT_AFTER_HEADER])
      response.resume()
      request.destroy()
      settle({
        refused: {
          reason: `refused with HTTP status ${response.statusCode}`,
          ...(response.statusCode === undefined ? {} : { status: response.statusCode }),
          ...(Number.isFinite(after) ? { reconnectAfterMs: after } : {}),
        },
      })
    })
    ws.on('error', (error) => {
      if (!settled) settle({ refused: { reason: error.message } })
    })
    ws.on('open', () => settle({ connection: openConnection(ws, () => bytesRead()) }))
  })
}

function openConnection(ws: WebSocket, bytesRead: () => number): Connection {
  const duplex = websocketDuplex(ws)
  let endedBy: string | undefined
  const ended = new Promise<Disconnect>((resolve) => {
    duplex.once('error', (error) => {
      endedBy ??= error.message
    })
    ws.once('close', (code, reason) => {
      const after = code === 1012 ? parseReconnectAfter(reason) : undefined
      resolve({
        reason: endedBy ?? `closed with code ${code}`,
        ...(after === undefined ? {} : { reconnectAfterMs: after }),
      })
    })
  })
  return {
    duplex,
    bytesRead,
    ping: () => ws.ping(),
    close: () => ws.close(1001),
    terminate: (reason) => {
      endedBy ??= reason
      ws.terminate()
    },
    closed: ended,
  }
}

/** A coordinator that goes away says when to come back, in the close frame's reason. */
function parseReconnectAfter(reason: Buffer): number | undefined {
  try {
    const { reconnectAfterMs } = JSON.parse(reason.toString()) as { reconnectAfterMs?: unknown }
    return typeof reconnectAfterMs === 'number' && reconnectAfterMs >= 0 ? reconnectAfterMs : undefined
  } catch {
    return undefined
  }
}

const tunnelUrl = (url: string): string => url.replace(/\/+$/, '') + TUNNEL_PATH
