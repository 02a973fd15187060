// Wraps a WebSocket as a Duplex byte stream: the transport of the tunnel's HTTP/2, used by both ends.
import { Duplex } from 'node:stream'

/** The members of ws's WebSocket that this module uses. Declared here, so that shared/ does not depend on ws. */
export type BinaryWebSocket = {
  readonly isPaused: boolean
  readonly readyState: number
  on(event: 'message', listener: (data: unknown, isBinary: boolean) => void): unknown
  on(event: 'error', listener: (error: Error) => void): unknown
  once(event: 'close', listener: () => void): unknown
  send(data: Uint8Array, done: (error?: Error | null) => void): void
  pause(): void
  resume(): void
  terminate(): void
}

/** readyState of a WebSocket that waits for the close message of its peer. */
const CLOSING = 2

const HIGH_WATER_MARK = 256 * 1024

/** Buffered writes up to this total size are copied into one message. */
const COALESCE_BYTES = 64 * 1024

/**
 * Wraps an open WebSocket. Each write waits for the previous one, so that ws buffers at most the largest write. Destroying
 * the stream terminates the WebSocket, unless its closing handshake has started; a text message destroys the stream.
 */
export function websocketDuplex(ws: BinaryWebSocket): Duplex {
  const duplex = new Duplex({
    allowHalfOpen: false,
    readableHighWaterMark: HIGH_WATER_MARK,
    writableHighWaterMark: HIGH_WATER_MARK,
    read() {
      if (ws.isPaused) ws.resume()
    },
    write(chunk: Buffer, _encoding, done) {
      ws.send(chunk, done)
    },
    writev(entries, done) {
      const chunks = entries.map((entry) => entry.chunk as Buffer)
      const total = chunks.reduce((sum, chunk) => sum + chunk.length, 0)
      if (total <= COALESCE_BYTES) return ws.send(Buffer.concat(chunks, total), done)
      // When one send fails, ws fails all later ones: the callback of the last is enough.
      for (const chunk of chunks.slice(0, -1)) ws.send(chunk, () => undefined)
      ws.send(chunks[chunks.length - 1] ?? Buffer.alloc(0), done)
    },
    destroy(error, done) {
      // Reads on: if received data were left, the kernel would reset the connection, and the peer might not get the close
      // message.
      if (ws.readyState === CLOSING) ws.resume()
      else ws.terminate()
      done(error)
    },
  })
  ws.on('message', (data, isBinary) => {
    if (duplex.destroyed) return
    if (!isBinary || !Buffer.isBuffer(data)) duplex.destroy(new Error('the peer sent a text message'))
    else if (!duplex.push(data)) ws.pause()
  })
  ws.on('error', (error) => duplex.destroy(error))
  ws.once('close', () => {
    if (!duplex.destroyed) duplex.push(null)
    duplex.destroy()
  })
  return duplex
}
