// Reads one output of a command up to the command's exit, without waiting for background processes that hold it open.
import { closeSync, readSync } from 'node:fs'
import { Socket } from 'node:net'
import type { Readable } from 'node:stream'

export type OutputReader = {
  /** Call at the command's exit. Delivers the bytes that a pipe holds and discards later output. */
  finish(): void
  close(): void
}

/**
 * Most commands exit earlier, and reading their pipe once costs less than a Socket. A command that fills its pipe earlier
 * waits this long.
 */
const SOCKET_DELAY_MS = 5
/** Bounds drain(), because background processes may keep writing. The kernel's default pipe-max-size. */
const MAX_PIPE_BYTES = 1024 * 1024

/** Shared by all readers: each chunk is consumed synchronously. */
const readBuffer = Buffer.allocUnsafeSlow(64 * 1024)

/**
 * @param fd the non-blocking read end of a pipe; the reader closes it
 * @param onChunk the chunk's memory is reused after the call
 * @param onClosed called once when the descriptor is closed: all writers closed the pipe, or close() was called
 */
export function readPipe(fd: number, onChunk: (chunk: Buffer) => void, onClosed: () => void): OutputReader {
  let socket: Socket | undefined
  let finished = false
  const deliver = (length: number) => {
    if (!finished) onChunk(readBuffer.subarray(0, length))
    return true
  }
  const openSocket = () => {
    const onread = { buffer: readBuffer, callback: deliver }
    socket ??= new Socket({ fd, readable: true, writable: false, onread }).once('close', onClosed).resume()
    return socket
  }
  const timer = setTimeout(openSocket, SOCKET_DELAY_MS)
  const stop = () => {
    finished = true
    clearTimeout(timer)
  }
  const close = () => {
    stop()
    if (socket !== undefined) return void socket.destroy()
    closeSync(fd)
    onClosed()
  }

  return {
    finish() {
      if (finished) return
      if (socket?.destroyed || drain(fd, deliver)) return close()
      stop()
      // A background process holds the write end. Closing the read end would kill the process with SIGPIPE: keep reading
      // and discard.
      openSocket().unref()
    },
    close,
  }
}

/** Reads a stream of child_process. The caller delays finish() until the stream has delivered the output. */
export function readStream(
  stream: Readable,
  onChunk: (chunk: Buffer) => void,
  onClosed: () => void,
): OutputReader {
  stream.on('data', onChunk).once('close', onClosed)
  return {
    // The stream continues to flow.
    finish: () => void stream.off('data', onChunk),
    close: () => void stream.destroy(),
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
