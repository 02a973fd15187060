// A WebSocket dialed out to the coordinator, set up alike for the tunnel and for what goes beside it.
import { isIPv4 } from 'node:net'
import { WebSocket } from 'ws'

export type WebSocketOptions = {
  headers: Readonly<Record<string, string>>
  handshakeTimeoutMs: number
  /** The largest message taken from the coordinator, in bytes. */
  maxMessageBytes: number
}

/** @param url of the coordinator, http(s), with the path */
export function openWebSocket(url: string, options: WebSocketOptions): WebSocket {
  return new WebSocket(url.replace(/^http/, 'ws'), {
    headers: options.headers,
    handshakeTimeout: options.handshakeTimeoutMs,
    maxPayload: options.maxMessageBytes,
    perMessageDeflate: false,
    // Only of text, which nobody sends here.
    skipUTF8Validation: true,
    ...(needsMask(url) ? {} : { generateMask: leaveZero }),
  })
}

/**
 * A mask of random bytes keeps what is sent from passing for requests to a proxy on the way that does not know of
 * WebSockets (RFC 6455, 10.3). Nobody reads what is inside TLS, and nobody is on the way to this machine itself: there
 * the mask is zero, and neither end has to copy and combine every byte.
 */
export function needsMask(url: string): boolean {
  const { protocol, hostname } = new URL(url)
  const isLoopback =
    hostname === 'localhost' || hostname === '[::1]' || (isIPv4(hostname) && hostname.startsWith('127.'))
  return !isLoopback && protocol !== 'https:'
}

/** The bytes to be filled are zero. */
function leaveZero(): void {}
