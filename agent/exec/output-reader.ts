// Reads one output pipe of a command up to the command's exit, without waiting for background processes that hold the pipe.
import { readSync } from 'node:fs'
import { Socket } from 'node:net'

export type OutputReader = {
  /** Call at the command's exit. Delivers the bytes that the pipe holds and discards later output. */
  finish(): void
  close(): void
}

/** Bounds drain(), because background processes may keep writing. The kernel's default pipe-max-size. */
const MAX_PIPE_BYTES = 1024 * 1024

/** Shared by all readers: each chunk is consumed synchronously. */
const readBuffer = Buffer.allocUnsafeSlow(64 * 1024)

/**
 * @param fd the non-blocking read end of a pipe; the reader closes it
 * @param onChunk the chunk's memory is reused after the call
 * @param onClosed called once when the descriptor is closed: all writers closed the pipe, or close() was called
 */
export function readOutput(fd: number, onChunk: (chunk: Buffer) => void, onClosed: () => void): OutputReader {
  let finished = false
  const deliver = (length: number) => {
    if (!finished) onChunk(readBuffer.subarray(0, length))
    return true
  }
  const socket = new Socket({
    fd,
    readable: true,
    writable: false,
    onread: { buffer: readBuffer, callback: deliver },
  })
  socket.once('close', onClosed)
  socket.resume()

  return {
    finish() {
      if (finished) return
      const isClosed = socket.destroyed || drain(fd, deliver)
      finished = true
      if (isClosed) socket.destroy()
      // A background process holds the write end. Closing the read end would kill the process with SIGPIPE: keep reading
      // and discard.
      else socket.unref()
    },
    close() {
      finished = true
      socket.destroy()
    },
  }
}

/** Reads the bytes that the pipe holds, without blocking. Returns true when all writers have closed the pipe. */
function drain(fd: number, deliver: (length: number) => void): boolean {
  for (let total = 0; total < MAX_PIPE_BYTES; ) {
    let length: number
    try {
      length = readSync(fd, readBuffer)
    } catch (error) {
      if (error instanceof Error && 'code' in error && error.code === 'EAGAIN') return false
      throw error
    }
    if (length === 0) return true
    deliver(length)
    total += length
  }
  return false
}
