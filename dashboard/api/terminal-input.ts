// The input of a terminal: bytes that the box has not accepted are sent again over the next connection.

const STDIN_CHANNEL = 0
/** See ATTACH_LIMITS of shared/attach-format.ts. */
const CHUNK_BYTES = 64 * 1024
const WINDOW_BYTES = 1024 * 1024

export class TerminalInput {
  readonly #sendBytes: (bytes: Uint8Array<ArrayBuffer>) => void
  /** From the accepted offset on. */
  #chunks: Uint8Array[] = []
  #accepted = 0
  /** The offset after the last byte that was sent over this connection. */
  #sent = 0
  #isConnected = false
  /** False: no message of the server has had the offset at which the input of this client continues. */
  #hasOffset = false

  constructor(send: (bytes: Uint8Array<ArrayBuffer>) => void) {
    this.#sendBytes = send
  }

  write(bytes: Uint8Array): void {
    for (let start = 0; start < bytes.length; start += CHUNK_BYTES)
      this.#chunks.push(bytes.subarray(start, start + CHUNK_BYTES))
    this.#flush()
  }

  /** A connection continues the input at the offset. */
  resume(offset: number): void {
    if (this.#hasOffset) this.#discardUntil(offset)
    this.#hasOffset = true
    this.#accepted = offset
    this.#sent = offset
    this.#isConnected = true
    this.#flush()
  }

  pause(): void {
    this.#isConnected = false
  }

  accept(offset: number): void {
    this.#discardUntil(offset)
    this.#accepted = Math.max(this.#accepted, offset)
    this.#flush()
  }

  #discardUntil(offset: number): void {
    let discarded = offset - this.#accepted
    for (let chunk = this.#chunks[0]; chunk !== undefined && discarded > 0; chunk = this.#chunks[0]) {
      if (chunk.length > discarded) this.#chunks[0] = chunk.subarray(discarded)
      else this.#chunks.shift()
      discarded -= chunk.length
    }
  }

  /** Sends what fits into the window. */
  #flush(): void {
    if (!this.#isConnected) return
    let start = this.#accepted
    for (const chunk of this.#chunks) {
      const end = start + chunk.length
      if (end - this.#accepted > WINDOW_BYTES) return
      if (end > this.#sent) {
        // A chunk whose start was sent is sent from there.
        const rest = chunk.subarray(Math.max(0, this.#sent - start))
        const message = new Uint8Array(rest.length + 1)
        message[0] = STDIN_CHANNEL
        message.set(rest, 1)
        this.#sendBytes(message)
        this.#sent = end
      }
      start = end
    }
  }
}
