// A file that is written at once and synced in groups.
import { closeSync, fdatasync, openSync, writeSync } from 'node:fs'
import { promisify } from 'node:util'

export type SpoolFile = {
  /** In the page cache when it returns; a call of the system that takes microseconds. Throws when the disk is full. */
  write(bytes: Buffer, position: number): void
  /** Resolves when everything written before is on the disk: one sync for all who wait for the one that runs. */
  sync(): Promise<void>
  /** After the syncs that were asked for. */
  close(): void
}

const datasync = promisify(fdatasync)

/** Makes the file anew. */
export function openFile(path: string): SpoolFile {
  const fd = openSync(path, 'w', 0o600)
  let last = Promise.resolve()
  let next: Promise<void> | undefined
  return {
    write(bytes, position) {
      for (let done = 0; done < bytes.length; ) {
        done += writeSync(fd, bytes, done, bytes.length - done, position + done)
      }
    },
    sync() {
      if (next !== undefined) return next
      const begun = last.then(() => {
        next = undefined
        return datasync(fd)
      })
      next = begun
      last = begun.catch(() => undefined)
      return begun
    },
    close() {
      void last.then(() => closeSync(fd))
    },
  }
}
