// Opens a WebSocket to the coordinator, for the tunnel and for dial-back streams.
import { WebSocket } from 'ws'
import { isUnixSocket, toWebSocketUrl } from './coordinator-url.ts'
import type { SelectProxy } from './proxy.ts'

export type WebSocketOptions = {
  headers: Readonly<Record<string, string>>
  handshakeTimeoutMs: number
  /** The largest accepted message, in bytes. */
  maxMessageBytes: number
  selectProxy: SelectProxy
}

/**
 * @param url the coordinator's URL
 * @param path starts with a slash
 */
export const openWebSocket = (
  url: string,
  path: string,
  { headers, handshakeTimeoutMs, maxMessageBytes, selectProxy }: WebSocketOptions,
): WebSocket =>
  new WebSocket(toWebSocketUrl(url, path), {
    headers,
    agent: selectProxy(url),
    handshakeTimeout: handshakeTimeoutMs,
    maxPayload: maxMessageBytes,
    perMessageDeflate: false,
    // The text messages of an attached client are parsed and validated.
    skipUTF8Validation: true,
    ...(isUnixSocket(url) && { generateMask: fillWithZeros }),
  })

/**
 * A random mask keeps proxies that do not know WebSockets from reading the bytes as requests (RFC 6455, section 10.3). On a
 * socket of this machine there is no proxy, and with a mask of zeros neither end copies and combines each byte.
 */
function fillWithZeros(mask: Buffer): void {
  mask.fill(0)
}
