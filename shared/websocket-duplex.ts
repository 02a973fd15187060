// A WebSocket as a stream of bytes, the pipe under the tunnel's HTTP/2. Used alike by both ends.
import { Duplex } from 'node:stream'
import { freeBytes } from './free-bytes.ts'

/** The part of ws's WebSocket that is needed, so that this folder depends on no library. */
export type BinaryWebSocket = {
  readonly isPaused: boolean
  on(event: 'message', listener: (data: unknown, isBinary: boolean) => void): unknown
  on(event: 'error', listener: (error: Error) => void): unknown
  once(event: 'close', listener: () => void): unknown
  send(data: Uint8Array, done: (error?: Error | null) => void): void
  pause(): void
  resume(): void
  terminate(): void
}

/** Writes that arrive together and are no larger than this in sum leave as one frame. Copying costs less there. */
const COALESCE_BYTES = 64 * 1024

/**
 * Wraps an open WebSocket. One message at a time is handed to the socket, so what ws buffers stays bounded by
 * the largest write. Destroying the stream terminates the WebSocket; a text frame destroys the stream. What is written
 * is freed once it is sent: HTTP/2 writes copies that nobody else has.
 */
export function websocketDuplex(ws: BinaryWebSocket): Duplex {
  const duplex = new Duplex({
    allowHalfOpen: false,
    readableHighWaterMark: 256 * 1024,
    writableHighWaterMark: 256 * 1024,
    read() {
      if (ws.isPaused) ws.resume()
    },
    write(chunk: Buffer, _encoding, done) {
      send(chunk, done)
    },
    writev(entries, done) {
      const chunks = entries.map((entry) => entry.chunk as Buffer)
      const total = chunks.reduce((sum, chunk) => sum + chunk.length, 0)
      if (total <= COALESCE_BYTES) {
        const whole = Buffer.concat(chunks, total)
        for (const chunk of chunks) freeBytes(chunk)
        return send(whole, done)
      }
      for (const chunk of chunks.slice(0, -1)) send(chunk, ignoreUntilLast)
      send(chunks[chunks.length - 1] ?? Buffer.alloc(0), done)
    },
    destroy(error, done) {
      ws.terminate()
      done(error)
    },
  })
  function send(chunk: Buffer, done: (error?: Error | null) => void): void {
    ws.send(chunk, (error) => {
      freeBytes(chunk)
      done(error)
    })
  }
  ws.on('message', (data, isBinary) => {
    if (!isBinary || !Buffer.isBuffer(data)) {
      duplex.destroy(new Error('the peer sent a text frame'))
      return
    }
    if (!duplex.destroyed && !duplex.push(data)) ws.pause()
  })
  ws.on('error', (error) => duplex.destroy(error))
  ws.once('close', () => {
    if (!duplex.destroyed) duplex.push(null)
    duplex.destroy()
  })
  return duplex
}

/** ws fails every queued send when one fails: the last one's callback is enough. */
function ignoreUntilLast(): void {}
