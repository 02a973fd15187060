// One connection of an attachment: typed messages over an open WebSocket, and detection of a dead peer.
import type { WebSocket } from 'ws'
import type { ClientMessage, OutputBytes, ServerMessage } from '../../shared/api/attach.ts'
import { encodeChunk } from '../../shared/attach-format.ts'
import { invalidDataError } from '../connection/server-data.ts'
import { parseServerMessage } from './messages.ts'

export type Connection = {
  send(message: ClientMessage): void
  /** @param bytes at most ATTACH_LIMITS.chunkBytes */
  sendStdin(bytes: Buffer): void
  /** Sends what was passed to `send` before, then closes. Resolves when the connection is closed. */
  close(): Promise<void>
}

export type ConnectionOptions = {
  /** May throw a CliError, which closes the connection. */
  onMessage(message: ServerMessage | OutputBytes): void
  /** Called once. `code` is that of WebSocket. */
  onClose(code: number): void
  /** An error of `onMessage`, or a violation of the protocol. A new connection cannot help. */
  onError(error: unknown): void
  /** The connection is closed when nothing arrives for this long. */
  idleTimeoutMs: number
}

/** How long the server may take to complete the closing handshake. */
const CLOSE_TIMEOUT_MS = 1000

/** @param socket paused */
export function startConnection(
  socket: WebSocket,
  { onMessage, onClose, onError, idleTimeoutMs }: ConnectionOptions,
): Connection {
  // The server sends a ping every 15 seconds.
  const idleTimer = setTimeout(() => socket.terminate(), idleTimeoutMs)
  const closed = Promise.withResolvers<void>()
  const fail = (error: unknown) => {
    socket.terminate()
    onError(error)
  }
  socket.on('ping', () => idleTimer.refresh())
  socket.on('message', (data, isBinary) => {
    idleTimer.refresh()
    if (!Buffer.isBuffer(data) || socket.readyState !== socket.OPEN) return
    try {
      const message = parseServerMessage(data, isBinary)
      if (message !== null) onMessage(message)
    } catch (error) {
      fail(error)
    }
  })
  socket.on('error', (error) => {
    // Other errors are those of the network, and `close` follows.
    if ('code' in error && String(error.code).startsWith('WS_ERR_'))
      fail(invalidDataError(`an invalid WebSocket message (${error.message})`))
  })
  socket.once('close', (code) => {
    clearTimeout(idleTimer)
    closed.resolve()
    onClose(code)
  })
  socket.resume()

  return {
    send: (message) => socket.send(JSON.stringify(message), ignoreError),
    sendStdin: (bytes) => socket.send(encodeChunk('stdin', bytes), ignoreError),
    close() {
      socket.close(1000)
      setTimeout(() => socket.terminate(), CLOSE_TIMEOUT_MS).unref()
      return closed.promise
    },
  }
}

/** After a failure to send, the connection is closed. */
const ignoreError = () => undefined
