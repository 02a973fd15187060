// Opens a WebSocket to the coordinator, for the tunnel and for dial-back streams.
import { WebSocket } from 'ws'

export type WebSocketOptions = {
  headers: Readonly<Record<string, string>>
  handshakeTimeoutMs: number
  /** The largest accepted message, in bytes. */
  maxMessageBytes: number
}

/** @param url http(s) URL with the path */
export const openWebSocket = (
  url: string,
  { headers, handshakeTimeoutMs, maxMessageBytes }: WebSocketOptions,
): WebSocket =>
  new WebSocket(url.replace(/^http/, 'ws'), {
    headers,
    handshakeTimeout: handshakeTimeoutMs,
    maxPayload: maxMessageBytes,
    perMessageDeflate: false,
    // Applies to text messages only, which the coordinator never sends.
    skipUTF8Validation: true,
  })
