// Reserves disk space for the database: a file that is deleted when the disk is full. Without it a full disk could not be
// emptied, because deleting a box writes to the database.
import { randomBytes } from 'node:crypto'
import { existsSync, rmSync, statfsSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'

export type DiskReserve = {
  /** Deletes the file. False when the file was deleted before: no space has become free. */
  release(): boolean
  /** Creates a deleted file again when the disk has several times its size free. */
  restore(): void
  readonly isReleased: boolean
}

/** Enough for the changes of thousands of boxes. */
const RESERVE_BYTES = 16 * 1024 * 1024
/** The file is restored only when this many times its size is free: the last free space is for the boxes' files. */
const RESTORE_FACTOR = 4
/** With less free space even a start could fail. */
const START_BYTES = 1024 * 1024

/** Creates the file if there is enough space. Releases an existing file when the disk has almost no free space. */
export function openDiskReserve(
  file: string,
  { onRelease = () => undefined, bytes = RESERVE_BYTES }: { onRelease?: () => void; bytes?: number } = {},
): DiskReserve {
  const readFreeBytes = () => {
    const { bavail, bsize } = statfsSync(dirname(file))
    return bavail * bsize
  }
  let isReleased = !existsSync(file)

  function release(): boolean {
    if (isReleased) return false
    isReleased = true
    rmSync(file, { force: true })
    onRelease()
    return true
  }

  function restore(): void {
    if (!isReleased || readFreeBytes() < RESTORE_FACTOR * bytes) return
    try {
      // Random bytes: a file system may compress zeros.
      writeFileSync(file, randomBytes(bytes), { mode: 0o600 })
      isReleased = false
    } catch {
      // The free space is not available to this user. The next call tries again.
      rmSync(file, { force: true })
    }
  }

  if (readFreeBytes() < START_BYTES) release()
  else restore()
  return {
    release,
    restore,
    get isReleased() {
      return isReleased
    },
  }
}
