// WebSocket routes. An upgrade request passes the same hooks as any other request, so that a refusal is an HTTP response;
// the route's handler completes the handshake.
import { type IncomingMessage, type RequestListener, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { type WebSocket, WebSocketServer } from 'ws'
import { MAX_ATTACH_MESSAGE_BYTES } from '../../shared/attach-format.ts'
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
})

export const isWebSocketUpgrade = ({ headers }: IncomingMessage): boolean =>
  headers.upgrade?.toLowerCase() === 'websocket'

/** Passes an upgrade request to the request listener. The connection is closed after an HTTP response. */
export function serveUpgrade(
  request: IncomingMessage,
  socket: Duplex,
  head: Buffer,
  listener: RequestListener,
): void {
  upgrades.set(request, { socket, head })
  socket.on('error', () => undefined)
  const response = new ServerResponse(request)
  response.shouldKeepAlive = false
  response.assignSocket(socket as Socket)
  response.once('finish', () => socket.end(() => socket.destroy()))
  listener(request, response)
}

/** @throws ApiError invalid_request when the request is not a WebSocket handshake */
export function assertWebSocketHandshake({ raw }: FastifyRequest): void {
  if (upgrades.has(raw) && raw.headers['sec-websocket-version'] === '13' && raw.headers['sec-websocket-key'])
    return
  throw new ApiError('invalid_request', 'This route is a WebSocket. Connect with a WebSocket client.', {
    headers: { upgrade: 'websocket', connection: 'Upgrade' },
  })
}

/** Completes the handshake. The WebSocket is paused: the caller resumes it after it has added its listeners. */
export function acceptWebSocket({ raw }: FastifyRequest, reply: FastifyReply): Promise<WebSocket> {
  const upgrade = upgrades.get(raw)
  if (upgrade === undefined) throw new Error('not an upgrade request')
  reply.hijack()
  return new Promise((resolve, reject) => {
    upgrade.socket.once('close', () => reject(new Error('the client disconnected during the handshake')))
    server.handleUpgrade(raw, upgrade.socket, upgrade.head, (ws) => {
      ws.pause()
      resolve(ws)
    })
  })
}
