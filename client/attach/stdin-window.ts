// The bytes of stdin that the server has not accepted yet. A new connection sends them again.
import { createInvalidError } from '../http/errors.ts'
import { ATTACH_LIMITS, encodeChunk } from './format.ts'

type Write = { bytes: Uint8Array; resolve(isNeeded: boolean): void }

export class StdinWindow {
  readonly #sendMessage: (data: string | Uint8Array<ArrayBuffer>) => void
  #isConnected = false
  /** False: the offset where the stdin of this client begins is not known. */
  #hasOffset = false
  #accepted = 0
  #end = 0
  /** The messages with the bytes from the accepted offset on. */
  #messages: Uint8Array<ArrayBuffer>[] = []
  /** What waits until the window has room. */
  #writes: Write[] = []
  #isEnding = false
  #isClosed = false

  constructor(send: (data: string | Uint8Array<ArrayBuffer>) => void) {
    this.#sendMessage = send
  }

  /** Resolves when the bytes are sent, or will be by the next connection: with false when no further bytes are needed. */
  write(bytes: Uint8Array): Promise<boolean> {
    if (this.#isClosed || this.#isEnding) return Promise.resolve(false)
    return new Promise((resolve) => {
      this.#writes.push({ bytes, resolve })
      this.#fill()
    })
  }

  /** Sends the end of stdin after what was written. */
  end(): void {
    if (this.#isEnding) return
    this.#isEnding = true
    this.#sendEnd()
  }

  /** The server has accepted stdin up to `offset`. @throws BoxwoodError for an offset that is not in the window */
  accept(offset: number): void {
    if (this.#isClosed) return
    if (offset < this.#accepted || offset > this.#end)
      throw createInvalidError('an offset of stdin that is out of range')
    let discarded = offset - this.#accepted
    this.#accepted = offset
    for (let first = this.#messages[0]; first !== undefined && discarded > 0; first = this.#messages[0]) {
      const { length } = first.subarray(1)
      if (length > discarded) this.#messages[0] = encodeChunk('stdin', first.subarray(1 + discarded))
      else this.#messages.shift()
      discarded -= length
    }
    this.#fill()
  }

  /**
   * Continues at the offset of a new connection. Returns false, and discards all bytes, when the box has lost accepted bytes.
   * @param isTerminal the bytes are those of a user, who sees what is missing: the rest is sent
   * @throws BoxwoodError for an offset that is not in the window
   */
  resume(offset: number, isTerminal: boolean): boolean {
    if (this.#isClosed) return true
    const isLost = this.#hasOffset && offset < this.#accepted
    if (isLost && !isTerminal) {
      this.close()
      return false
    }
    if (isLost || !this.#hasOffset) {
      this.#end += offset - this.#accepted
      this.#accepted = offset
    }
    this.#hasOffset = true
    this.accept(offset)
    this.#isConnected = true
    for (const message of this.#messages) this.#sendMessage(message)
    this.#sendEnd()
    return true
  }

  /** The connection is closed. */
  pause(): void {
    this.#isConnected = false
  }

  /** The command reads no more: discards all bytes. */
  close(): void {
    this.#isClosed = true
    this.#messages = []
    for (const { resolve } of this.#writes.splice(0)) resolve(false)
  }

  /** Moves what fits into the window. */
  #fill(): void {
    for (let write = this.#writes[0]; write !== undefined; write = this.#writes[0]) {
      while (write.bytes.length > 0) {
        const chunk = write.bytes.subarray(0, ATTACH_LIMITS.chunkBytes)
        if (this.#end + chunk.length - this.#accepted > ATTACH_LIMITS.stdinWindowBytes) return
        const message = encodeChunk('stdin', chunk)
        this.#messages.push(message)
        this.#end += chunk.length
        write.bytes = write.bytes.subarray(chunk.length)
        if (this.#isConnected) this.#sendMessage(message)
      }
      this.#writes.shift()
      write.resolve(true)
    }
    this.#sendEnd()
  }

  #sendEnd(): void {
    if (this.#isEnding && this.#isConnected && this.#writes.length === 0)
      this.#sendMessage(JSON.stringify({ type: 'stdinEnd' }))
  }
}
