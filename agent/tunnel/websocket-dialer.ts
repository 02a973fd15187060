// Opens dial-back connections that are WebSockets.
import { once } from 'node:events'
import type { WebSocket } from 'ws'
import { BOX_HEADER } from '../../shared/protocol.ts'
import { noProxy, type SelectProxy } from './proxy.ts'
import { openWebSocket } from './websocket.ts'

export type DialerOptions = {
  boxId: string
  /** The coordinator's URL, without a trailing slash. */
  readUrl(): Promise<string>
  readToken(): Promise<string>
  /** Default: no proxy. */
  selectProxy?: SelectProxy
  handshakeTimeoutMs?: number
}

export type WebSocketDialer = {
  /** Rejects when the coordinator rejects the connection. */
  connect(id: string): Promise<WebSocket>
  /** Closes all connections. */
  close(): void
}

/**
 * @param pathPrefix the id follows it in the path
 * @param options.isPaused the caller resumes the connection when it has added its listeners
 */
export function createWebSocketDialer(
  { boxId, readUrl, readToken, selectProxy = noProxy, handshakeTimeoutMs = 10_000 }: DialerOptions,
  pathPrefix: string,
  maxMessageBytes: number,
  { isPaused = false } = {},
): WebSocketDialer {
  const connections = new Set<WebSocket>()
  return {
    async connect(id) {
      const ws = openWebSocket(await readUrl(), pathPrefix + encodeURIComponent(id), {
        headers: { authorization: `Bearer ${await readToken()}`, [BOX_HEADER]: boxId },
        handshakeTimeoutMs,
        maxMessageBytes,
        selectProxy,
      })
      connections.add(ws)
      ws.once('close', () => connections.delete(ws))
      // Without a listener, an 'error' after this function returned would be an uncaught exception.
      ws.on('error', () => undefined)
      // A message may arrive together with the handshake.
      if (isPaused) ws.once('open', () => ws.pause())
      // Rejects on 'error'.
      await once(ws, 'open')
      return ws
    },
    close() {
      for (const ws of connections) ws.terminate()
    },
  }
}
