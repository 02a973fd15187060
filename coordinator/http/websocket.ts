// WebSocket routes. An upgrade request passes the same hooks as any other request, so that a refusal is an HTTP response;
// the route's handler completes the handshake.
import { type IncomingMessage, type RequestListener, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { type WebSocket, WebSocketServer } from 'ws'
import { ATTACH_SUBPROTOCOL, MAX_ATTACH_MESSAGE_BYTES } from '../../shared/attach-format.ts'
import { ApiError } from '../../shared/errors.ts'

const upgrades = new WeakMap<IncomingMessage, { socket: Duplex; head: Buffer }>()

const server = new WebSocketServer({
  noServer: true,
  clientTracking: false,
  perMessageDeflate: false,
  maxPayload: MAX_ATTACH_MESSAGE_BYTES,
  maxFragments: 64,
  // The relay responds, and limits the number of pings.
  autoPong: false,
  // Without this function, ws selects the first subprotocol, which may contain a ticket.
  handleProtocols: (protocols) => protocols.has(ATTACH_SUBPROTOCOL) && ATTACH_SUBPROTOCOL,
})

export const isWebSocketUpgrade = ({ headers }: IncomingMessage): boolean =>
  headers.upgrade?.toLowerCase() === 'websocket'

/** The connection of an upgrade request that serveUpgrade() has passed on; undefined: another request. */
export const getUpgrade = (request: IncomingMessage): { socket: Duplex; head: Buffer } | undefined =>
  upgrades.get(request)

/** Passes an upgrade request to the request listener. The connection is closed after an HTTP response. */
export function serveUpgrade(
  request: IncomingMessage,
  socket: Duplex,
  head: Buffer,
  listener: RequestListener,
): void {
  socket.on('error', () => undefined)
  const response = new ServerResponse(request)
  response.shouldKeepAlive = false
  try {
    response.assignSocket(socket as Socket)
  } catch {
    // An earlier request on the connection has no complete response yet. No client sends an upgrade request then.
    return void socket.destroy()
  }
  upgrades.set(request, { socket, head })
  // Node does this only for connections that are not upgraded. A large response would never continue.
  socket.on('drain', () => response.emit('drain'))
  response.once('finish', () => socket.end(() => socket.destroy()))
  listener(request, response)
}

const TOKEN = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/

function isSubprotocolList(header: string): boolean {
  const protocols = header.split(',').map((protocol) => protocol.trim())
  return protocols.every((protocol) => TOKEN.test(protocol)) && new Set(protocols).size === protocols.length
}

/**
 * Checks all that ws checks: after this, the route's handler opens a connection to the box before the handshake.
 * @throws ApiError invalid_request when the request is not a WebSocket handshake
 */
export function assertWebSocketHandshake({ raw }: FastifyRequest): void {
  const { headers } = raw
  const protocols = headers['sec-websocket-protocol']
  const isHandshake =
    upgrades.has(raw) &&
    headers['sec-websocket-version'] === '13' &&
    /^[+/0-9A-Za-z]{22}==$/.test(headers['sec-websocket-key'] ?? '') &&
    (protocols === undefined || isSubprotocolList(protocols))
  if (isHandshake) return
  throw new ApiError('invalid_request', 'This route is a WebSocket. Connect with a WebSocket client.', {
    headers: { upgrade: 'websocket', connection: 'Upgrade' },
  })
}

/** How long a client may take to complete the closing handshake. */
const CLOSE_TIMEOUT_MS = 2_000

export function closeWebSocket(ws: WebSocket, code: number, reason: string): void {
  // Reads the close frame of the peer.
  ws.resume()
  ws.close(code, reason)
  setTimeout(() => ws.terminate(), CLOSE_TIMEOUT_MS).unref()
}

/** Completes the handshake. The WebSocket is paused: the caller resumes it after it has added its listeners. */
export function acceptWebSocket({ raw }: FastifyRequest, reply: FastifyReply): Promise<WebSocket> {
  const upgrade = upgrades.get(raw)
  if (upgrade === undefined) throw new Error('not an upgrade request')
  reply.hijack()
  // ws writes the response to the handshake, so the status is set here for metrics and traces.
  reply.raw.statusCode = 101
  return new Promise((resolve, reject) => {
    upgrade.socket.once('close', () => reject(new Error('the client disconnected during the handshake')))
    server.handleUpgrade(raw, upgrade.socket, upgrade.head, (ws) => {
      ws.pause()
      resolve(ws)
    })
  })
}
