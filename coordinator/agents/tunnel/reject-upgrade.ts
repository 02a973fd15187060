// Answers a WebSocket upgrade of an agent with an HTTP error.
import type { Duplex } from 'node:stream'
import { PROTOCOL_VERSION } from '../../../shared/protocol.ts'

export type Rejection = { status: number; code: string; message: string; headers?: Record<string, string> }

const REASON_PHRASES: Record<number, string> = {
  400: 'Bad Request',
  401: 'Unauthorized',
  403: 'Forbidden',
  404: 'Not Found',
  409: 'Conflict',
  410: 'Gone',
  426: 'Upgrade Required',
  429: 'Too Many Requests',
  503: 'Service Unavailable',
}

/** Sends the response and closes the connection. */
export function rejectUpgrade(socket: Duplex, { status, code, message, headers = {} }: Rejection): void {
  if (socket.destroyed) return
  const body = JSON.stringify({ ok: false, error: { code, message }, protocolVersion: PROTOCOL_VERSION })
  const allHeaders = {
    connection: 'close',
    'content-type': 'application/json',
    'content-length': String(Buffer.byteLength(body)),
    ...headers,
  }
  const headerLines = Object.entries(allHeaders).map(([name, value]) => `${name}: ${value}\r\n`)
  socket.once('finish', () => socket.destroy())
  socket.end(`HTTP/1.1 ${status} ${REASON_PHRASES[status] ?? 'Error'}\r\n${headerLines.join('')}\r\n${body}`)
}
