// A Duplex byte stream over the binary messages of a WebSocket: the transport of TCP connections.
import { Duplex } from 'node:stream'

/** The members of ws's WebSocket that this module uses. Declared here, so that shared/ does not depend on ws. */
export type BinaryWebSocket = {
  readonly isPaused: boolean
  send(data: Uint8Array, done: (error?: Error | null) => void): void
  pause(): void
  resume(): void
}

export type WebSocketDuplexOptions = {
  /** See Duplex. Default: false. */
  allowHalfOpen?: boolean
  /** Larger writes are sent as several messages. Default: no limit. */
  maxMessageBytes?: number
}

const HIGH_WATER_MARK = 256 * 1024

/** Buffered writes up to this total size are copied into one message. */
const COALESCE_BYTES = 64 * 1024

/**
 * Each write waits for the previous one, so that ws buffers at most the largest write. The owner of the WebSocket passes
 * its binary messages to receive(), and destroys the stream when the WebSocket closes. The stream never closes the
 * WebSocket.
 */
export class WebSocketDuplex extends Duplex {
  readonly #ws: BinaryWebSocket
  readonly #maxMessageBytes: number

  constructor(ws: BinaryWebSocket, options: WebSocketDuplexOptions = {}) {
    const { allowHalfOpen = false, maxMessageBytes = Number.POSITIVE_INFINITY } = options
    super({
      allowHalfOpen,
      readableHighWaterMark: HIGH_WATER_MARK,
      writableHighWaterMark: HIGH_WATER_MARK,
    })
    this.#ws = ws
    this.#maxMessageBytes = maxMessageBytes
  }

  receive(data: Buffer): void {
    if (!this.destroyed && !this.push(data)) this.#ws.pause()
  }

  override _read(): void {
    if (this.#ws.isPaused) this.#ws.resume()
  }

  override _write(chunk: Buffer, _encoding: BufferEncoding, done: (error?: Error | null) => void): void {
    this.#send([chunk], done)
  }

  override _writev(entries: { chunk: Buffer }[], done: (error?: Error | null) => void): void {
    const chunks = entries.map((entry) => entry.chunk)
    const total = chunks.reduce((sum, chunk) => sum + chunk.length, 0)
    this.#send(total <= COALESCE_BYTES ? [Buffer.concat(chunks, total)] : chunks, done)
  }

  #send(chunks: readonly Buffer[], done: (error?: Error | null) => void): void {
    const messages = chunks.flatMap((chunk) => splitChunk(chunk, this.#maxMessageBytes))
    const last = messages.pop()
    if (last === undefined) {
      done()
      return
    }
    // When one send fails, ws fails all later ones: the callback of the last is enough.
    for (const message of messages) this.#ws.send(message, () => undefined)
    this.#ws.send(last, done)
  }

  override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
    // Reads on: the WebSocket may still be used. If received data were left when it closes, the kernel would reset the
    // connection, and the peer might not get the close message.
    if (this.#ws.isPaused) this.#ws.resume()
    done(error)
  }
}

/** Returns no message for an empty chunk. */
function splitChunk(chunk: Buffer, maxBytes: number): Buffer[] {
  if (chunk.length <= maxBytes) return chunk.length === 0 ? [] : [chunk]
  const count = Math.ceil(chunk.length / maxBytes)
  return Array.from({ length: count }, (_, index) => chunk.subarray(index * maxBytes, (index + 1) * maxBytes))
}
