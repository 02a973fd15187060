// A file with synchronous writes and grouped fdatasync calls.
import { closeSync, fdatasync, openSync, writeSync } from 'node:fs'
import { promisify } from 'node:util'

export type SpoolFile = {
  /** Writes to the page cache, which takes microseconds. Throws when the disk is full. */
  write(bytes: Buffer, position: number): void
  /** Resolves when all earlier writes are on disk. Calls made while a sync is in progress share the next one. */
  sync(): Promise<void>
  /** Closes the file after all requested syncs. */
  close(): void
}

const datasync = promisify(fdatasync)

/** @param flags `w` creates the file, or truncates an existing one; `r+` opens an existing one */
export function openSpoolFile(path: string, flags: 'w' | 'r+'): SpoolFile {
  const fd = openSync(path, flags, 0o600)
  let lastSync = Promise.resolve()
  /** A sync that has been requested and has not started yet. */
  let queuedSync: Promise<void> | undefined
  return {
    write(bytes, position) {
      for (let written = 0; written < bytes.length; ) {
        written += writeSync(fd, bytes, written, bytes.length - written, position + written)
      }
    },
    sync() {
      if (queuedSync !== undefined) return queuedSync
      const sync = lastSync.then(() => {
        queuedSync = undefined
        return datasync(fd)
      })
      queuedSync = sync
      lastSync = sync.catch(() => undefined)
      return sync
    },
    close() {
      void lastSync.then(() => closeSync(fd))
    },
  }
}
