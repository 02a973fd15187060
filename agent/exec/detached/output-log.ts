// Reads one output log of a detached process by offset while the runner appends to it and discards its head.
import { closeSync, constants, fstatSync, lstatSync, openSync, read, readSync } from 'node:fs'
import { promisify } from 'node:util'
import { firstRetainedOffset } from './log-bounds.ts'
import { openOutputTimes } from './output-times.ts'
import type { OutputLog } from './types.ts'
import { watchPath } from './watch-path.ts'

export type OutputLogOptions = {
  path: string
  /** Bound of the log in bytes. The runner discards the head beyond it. */
  maxBytes: number
  /**
   * Size of the log when the process exited, null while it runs. Bytes that background processes append later are not
   * part of the output.
   */
  finalSize(): number | null
}

/**
 * Reads that start in this many bytes before the end are synchronous. The end of a growing log is in the page cache, where
 * a synchronous read is faster than a round trip to the thread pool.
 */
const RECENT_BYTES = 256 * 1024

const readAt = promisify(read)

export function openOutputLog({ path, maxBytes, finalSize }: OutputLogOptions): OutputLog {
  const listeners = new Set<() => void>()
  let stopWatching: (() => void) | undefined
  const clamp = (size: number) => Math.min(size, finalSize() ?? size)

  return {
    path,
    size: async () => clamp(lstatSync(path, { throwIfNoEntry: false })?.size ?? 0),
    async read(from, max) {
      // Open, stat and close of a local file take microseconds: less than a round trip to the thread pool.
      // O_NONBLOCK: the user of the box may have replaced the log by a FIFO.
      const fd = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK)
      try {
        const currentSize = () => clamp(fstatSync(fd).size)
        // Repeats when the runner discards the whole range during the read.
        for (let offset = from; ; ) {
          const size = currentSize()
          offset = Math.max(offset, firstRetainedOffset(size, maxBytes))
          const length = Math.min(max, size - offset)
          if (length <= 0) return { offset, bytes: Buffer.alloc(0) }
          const buffer = Buffer.allocUnsafe(length)
          const isRecent = size - offset <= RECENT_BYTES
          const bytesRead = isRecent
            ? readSync(fd, buffer, 0, length, offset)
            : (await readAt(fd, buffer, 0, length, offset)).bytesRead
          // The runner may have discarded bytes during the read. Discarded bytes read as zeros.
          const discardedBytes = Math.max(0, firstRetainedOffset(currentSize(), maxBytes) - offset)
          if (discardedBytes === 0 || discardedBytes < bytesRead)
            return { offset: offset + discardedBytes, bytes: buffer.subarray(discardedBytes, bytesRead) }
        }
      } finally {
        closeSync(fd)
      }
    },
    openTimes: () => openOutputTimes(path),
    watch(onChange) {
      const listener = () => onChange()
      listeners.add(listener)
      stopWatching ??= watchPath(path, () => {
        for (const notify of [...listeners]) notify()
      })
      return () => {
        if (!listeners.delete(listener) || listeners.size > 0) return
        stopWatching?.()
        stopWatching = undefined
      }
    },
  }
}
