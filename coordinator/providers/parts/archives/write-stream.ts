// Writes to the tar that extracts files, in a worker thread.
import type { Writable } from 'node:stream'

/** Data that waits for tar to read it. */
export const MAX_BUFFERED_BYTES = 2 * 1024 * 1024

/** Also resolves when the stream is closed. */
export function waitUntilDrained(target: Writable): Promise<void> {
  return new Promise((resolve) => {
    const stop = () => {
      target.off('drain', stop).off('close', stop)
      resolve()
    }
    target.on('drain', stop).on('close', stop)
  })
}
