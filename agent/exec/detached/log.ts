// Reads one output log of a detached process by offset while the runner appends to it and discards its head.
import { closeSync, fstatSync, openSync, read, readSync, statSync } from 'node:fs'
import { promisify } from 'node:util'
import { firstRetainedOffset } from './log-bounds.ts'
import type { OutputLog } from './types.ts'
import { watchPath } from './watch-path.ts'

export type LogOptions = {
  path: string
  /** The runner discards the head beyond this size. */
  maxBytes: number
  /** The size at exit, null before. Bytes that background processes append later are not part of the output. */
  finalSize(): number | null
}

/** The end of a growing log is in the page cache: a synchronous read is faster than a round trip to the thread pool. */
const RECENT_BYTES = 256 * 1024

const readAt = promisify(read)

export function openLog({ path, maxBytes, finalSize }: LogOptions): OutputLog {
  const listeners = new Set<() => void>()
  let stopWatching: (() => void) | undefined
  const clamp = (size: number) => Math.min(size, finalSize() ?? size)

  return {
    path,
    size: async () => clamp(statSync(path, { throwIfNoEntry: false })?.size ?? 0),
    async read(from, max) {
      // Open, stat and close of a local file take microseconds: less than a round trip to the thread pool.
      const fd = openSync(path, 'r')
      try {
        const sizeNow = () => clamp(fstatSync(fd).size)
        for (let offset = from; ; ) {
          const size = sizeNow()
          offset = Math.max(offset, firstRetainedOffset(size, maxBytes))
          const length = Math.min(max, size - offset)
          if (length <= 0) return { offset, bytes: Buffer.alloc(0) }
          const buffer = Buffer.allocUnsafe(length)
          const isRecent = size - offset <= RECENT_BYTES
          const bytesRead = isRecent
            ? readSync(fd, buffer, 0, length, offset)
            : (await readAt(fd, buffer, 0, length, offset)).bytesRead
          // A discarded range reads as zeros, and the runner may have discarded more during the read.
          const discarded = Math.max(0, firstRetainedOffset(sizeNow(), maxBytes) - offset)
          if (discarded === 0 || discarded < bytesRead)
            return { offset: offset + discarded, bytes: buffer.subarray(discarded, bytesRead) }
        }
      } finally {
        closeSync(fd)
      }
    },
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
