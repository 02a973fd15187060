// A TCP socket that loses no received bytes when the peer resets the connection. A server that responds before it has read
// the whole request resets the connection when it closes it: the kernel still has the response.
import { Socket } from 'node:net'
import { whenRead } from '../../shared/when-read.ts'

type Done = (error?: Error | null) => void

/** Emits the error of a reset when all received bytes are read. A socket of node:net emits it when a write fails. */
export class LocalSocket extends Socket {
  #writeError: Error | undefined
  /** The kernel has no more bytes, and the connection was reset. */
  #isReset = false

  override _write(chunk: Buffer, encoding: BufferEncoding, done: Done): void {
    super._write(chunk, encoding, (error) => this.#afterWrite(error, done))
  }

  override _writev(chunks: { chunk: Buffer; encoding: BufferEncoding }[], done: Done): void {
    super._writev?.(chunks, (error) => this.#afterWrite(error, done))
  }

  /** A write that fails never completes: the writer waits until the socket is destroyed. */
  #afterWrite(error: Error | null | undefined, done: Done): void {
    if (error) this.#failWrite(error)
    else done()
  }

  #failWrite(error: Error): void {
    this.#writeError ??= error
    if (this.readableEnded) this.destroy(error)
    // The FIN of the peer may have arrived, while its reader has not read everything before it.
    else this.once('end', () => this.destroy(error))
  }

  override _read(size: number): void {
    // The kernel reports an error only once: reading again would be a regular end.
    if (!this.#isReset) super._read(size)
  }

  override push(chunk: Buffer | null, encoding?: BufferEncoding): boolean {
    // The write has got the error of the kernel, and reading ends as after a FIN.
    if (chunk === null && this.#writeError !== undefined) return this.#reset(this.#writeError)
    return super.push(chunk, encoding)
  }

  override destroy(error?: NodeJS.ErrnoException): this {
    if (error?.syscall === 'read' && !this.#isReset && this.readableLength > 0) this.#reset(error)
    else super.destroy(error)
    return this
  }

  #reset(error: Error): false {
    this.#isReset = true
    whenRead(this, () => this.destroy(error))
    return false
  }
}
