// The answer to an agent whose connection is not upgraded: HTTP, with a reason.
import type { Duplex } from 'node:stream'
import { PROTOCOL_VERSION } from '../../shared/protocol.ts'

export type Refusal = { status: number; code: string; message: string; headers?: Record<string, string> }

const REASONS: Record<number, string> = {
  400: 'Bad Request',
  401: 'Unauthorized',
  404: 'Not Found',
  409: 'Conflict',
  426: 'Upgrade Required',
  429: 'Too Many Requests',
  503: 'Service Unavailable',
}

/** Answers, and ends the connection. */
export function refuse(socket: Duplex, { status, code, message, headers = {} }: Refusal): void {
  if (socket.destroyed) return
  const body = JSON.stringify({ ok: false, error: { code, message }, protocolVersion: PROTOCOL_VERSION })
  const lines = {
    connection: 'close',
    'content-type': 'application/json',
    'content-length': String(Buffer.byteLength(body)),
    ...headers,
  }
  const head = Object.entries(lines).map(([name, value]) => `${name}: ${value}\r\n`)
  socket.once('finish', () => socket.destroy())
  socket.end(`HTTP/1.1 ${status} ${REASONS[status] ?? 'Refused'}\r\n${head.join('')}\r\n${body}`)
}
