// Writes the stdin of an attached command to its FIFO, one chunk at a time, and counts the written bytes.
import { constants, openSync } from 'node:fs'
import { Socket } from 'node:net'

export type StdinWriter = {
  /** The offset after the chunk that is being written. Bytes after it are dropped by reset(). */
  acceptedOffset(): number
  /** Queues bytes. The caller bounds the queue with `queuedBytes`. */
  write(bytes: Buffer): void
  queuedBytes(): number
  /** End of file, after the queued bytes. */
  end(): void
  /** Drops the queued bytes and the end: a reconnected client sends them again. */
  reset(): void
  /** The command has closed its stdin, or has exited. Further bytes are discarded. */
  readonly isClosed: boolean
  /** End of file was written. */
  readonly isEnded: boolean
  close(): void
}

export type StdinEvents = {
  /** Further bytes were written. */
  onWritten(offset: number): void
  /** The command has closed its stdin. */
  onClosed(): void
  /** All bytes are written: the end of file follows. */
  onEnd(offset: number): void
}

/** Opens the FIFO, which must have a reader. Without one, the stdin counts as closed. */
export function openStdinWriter(path: string, { onWritten, onClosed, onEnd }: StdinEvents): StdinWriter {
  const queue: Buffer[] = []
  let queuedBytes = 0
  let writtenBytes = 0
  let inFlightBytes = 0
  let shouldEnd = false
  let isEnded = false
  let socket = openForWriting(path)

  const discardQueue = () => {
    queue.length = 0
    queuedBytes = 0
  }
  const closeSocket = () => {
    socket?.destroy()
    socket = null
  }
  const onError = () => {
    if (socket === null) return
    closeSocket()
    writtenBytes += inFlightBytes + queuedBytes
    inFlightBytes = 0
    discardQueue()
    if (!isEnded) onClosed()
  }
  const writeNext = () => {
    if (socket === null || inFlightBytes > 0) return
    const chunk = queue.shift()
    if (chunk === undefined) {
      if (!shouldEnd || isEnded) return
      isEnded = true
      onEnd(writtenBytes)
      return closeSocket()
    }
    queuedBytes -= chunk.length
    inFlightBytes = chunk.length
    socket.write(chunk, (error) => {
      // 'error' follows.
      if (error || socket === null) return
      writtenBytes += chunk.length
      inFlightBytes = 0
      onWritten(writtenBytes)
      writeNext()
    })
  }
  socket?.on('error', onError)

  return {
    acceptedOffset: () => writtenBytes + inFlightBytes,
    queuedBytes: () => queuedBytes + inFlightBytes,
    write(bytes) {
      if (socket === null) {
        writtenBytes += bytes.length
        return
      }
      queue.push(bytes)
      queuedBytes += bytes.length
      writeNext()
    },
    end() {
      shouldEnd = true
      writeNext()
    },
    reset() {
      discardQueue()
      if (!isEnded) shouldEnd = false
    },
    get isClosed() {
      return socket === null
    },
    get isEnded() {
      return isEnded
    },
    close: closeSocket,
  }
}

/**
 * The stdin of a command whose agent has restarted.
 * @param length null: the previous agent had not written all bytes; the others are lost
 */
export const createRestoredStdin = (length: number | null): StdinWriter => ({
  acceptedOffset: () => length ?? 0,
  write: () => undefined,
  queuedBytes: () => 0,
  end: () => undefined,
  reset: () => undefined,
  isClosed: true,
  isEnded: length !== null,
  close: () => undefined,
})

function openForWriting(path: string): Socket | null {
  try {
    const fd = openSync(path, constants.O_WRONLY | constants.O_NONBLOCK)
    return new Socket({ fd, readable: false, writable: true })
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code !== 'ENXIO' && code !== 'ENOENT') throw error
    return null
  }
}
