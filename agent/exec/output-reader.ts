// Reads one output pipe of a command: everything written before it ended, and no waiting for who still holds the pipe.
import { readSync } from 'node:fs'
import { Socket } from 'node:net'

export type OutputReader = {
  /** The command has ended: hands over what is in the pipe now; what others write later is thrown away. */
  finish(): void
  close(): void
}

/** The largest pipe an ordinary user can have: what was in it at the exit is never more. */
const LARGEST_PIPE_BYTES = 1024 * 1024

/** One for all: a chunk is handed over and copied before anything else is read. */
const scratch = Buffer.allocUnsafeSlow(64 * 1024)

/**
 * @param fd the non-blocking read end of a pipe; belongs to the reader from now on
 * @param onClosed called once, when the descriptor is closed: nobody writes to the pipe any more, or close() was called
 */
export function readOutput(fd: number, onChunk: (chunk: Buffer) => void, onClosed: () => void): OutputReader {
  let finished = false
  const hand = (length: number) => {
    if (!finished) onChunk(scratch.subarray(0, length))
    return true
  }
  const socket = new Socket({
    fd,
    readable: true,
    writable: false,
    onread: { buffer: scratch, callback: hand },
  })
  socket.once('close', onClosed)
  socket.resume()

  return {
    finish() {
      if (finished) return
      const ended = socket.destroyed || drain(fd, hand)
      finished = true
      if (ended) socket.destroy()
      // Someone in the background holds the other end. To close ours would kill it at its next line of output;
      // so it may go on writing, to nobody.
      else socket.unref()
    },
    close() {
      finished = true
      socket.destroy()
    },
  }
}

/** Reads what the pipe holds without waiting. True when nobody can write to it any more. */
function drain(fd: number, hand: (length: number) => void): boolean {
  for (let read = 0; read < LARGEST_PIPE_BYTES; ) {
    let length: number
    try {
      length = readSync(fd, scratch)
    } catch (error) {
      if (error instanceof Error && 'code' in error && error.code === 'EAGAIN') return false
      throw error
    }
    if (length === 0) return true
    hand(length)
    read += length
  }
  return false
}
