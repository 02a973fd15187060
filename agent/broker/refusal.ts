// Responses of the listener to CONNECT requests that it does not carry out. Programs show their text.
import { STATUS_CODES } from 'node:http'
import type { Socket } from 'node:net'

const CLOSE_TIMEOUT_MS = 5_000

export class Refusal extends Error {
  readonly status: number

  /** @param message in plain ASCII */
  constructor(status: number, message: string) {
    super(message)
    this.status = status
  }
}

/** @param headers lines that end with CRLF */
export const formatRefusal = ({ status, message }: Refusal, headers: string): string => {
  const text = `boxwood: ${message}\n`
  return `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n${headers}Content-Type: text/plain\r\nContent-Length: ${Buffer.byteLength(text)}\r\n\r\n${text}`
}

/** Discards what the client still sends, so that it receives the whole response. */
export function refuse(socket: Socket, refusal: Refusal): void {
  socket.resume().end(formatRefusal(refusal, 'Connection: close\r\n'))
  const timer = setTimeout(() => socket.destroy(), CLOSE_TIMEOUT_MS).unref()
  socket.once('close', () => clearTimeout(timer))
}
