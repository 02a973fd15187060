// A WebSocket as a stream of bytes: the pipe under the tunnel's HTTP/2, used alike by both ends, and what is only read.
import { Duplex, Readable } from 'node:stream'
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

/** As much of what came waits for its reader before the peer has to. */
const READ_BYTES = 256 * 1024

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
    ...readFrom(ws),
    readableHighWaterMark: READ_BYTES,
    writableHighWaterMark: 256 * 1024,
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
  })
  function send(chunk: Buffer, done: (error?: Error | null) => void): void {
    ws.send(chunk, (error) => {
      freeBytes(chunk)
      done(error)
    })
  }
  pushMessages(ws, duplex)
  ws.on('error', (error) => duplex.destroy(error))
  ws.once('close', () => {
    if (!duplex.destroyed) duplex.push(null)
    duplex.destroy()
  })
  return duplex
}

/**
 * What the peer of an open WebSocket sends, when nothing is sent to it. It ends with the connection, broken or not, but
 * not before all that came has been read. Destroying it terminates the WebSocket; a text frame destroys it.
 */
export function websocketReadable(ws: BinaryWebSocket): Readable {
  const stream = new Readable({ ...readFrom(ws), highWaterMark: READ_BYTES })
  pushMessages(ws, stream)
  // 'close' follows.
  ws.on('error', () => undefined)
  ws.once('close', () => {
    if (!stream.destroyed) stream.push(null)
  })
  return stream
}

/** How a stream reads from a WebSocket, and lets go of it. */
const readFrom = (ws: BinaryWebSocket) => ({
  read() {
    if (ws.isPaused) ws.resume()
  },
  destroy(error: Error | null, done: (error?: Error | null) => void) {
    ws.terminate()
    done(error)
  },
})

/** A stream that is full pauses the WebSocket, until it is read. */
function pushMessages(ws: BinaryWebSocket, stream: Readable): void {
  ws.on('message', (data, isBinary) => {
    if (stream.destroyed) return
    if (!isBinary || !Buffer.isBuffer(data)) stream.destroy(new Error('the peer sent a text frame'))
    else if (!stream.push(data)) ws.pause()
  })
}

/** ws fails every queued send when one fails: the last one's callback is enough. */
function ignoreUntilLast(): void {}
