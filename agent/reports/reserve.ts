// Disk space for reports on a full disk: a file of zeros, which becomes a segment and is overwritten in place. Deleting it
// would not help: the processes that filled the disk would take the space.
import { renameSync } from 'node:fs'
import { access, open, rename } from 'node:fs/promises'
import { replaceFile } from '../durable-file.ts'

export type Reserve = {
  /** Creates the file where it is missing. Rejects when the disk is full. */
  create(): Promise<void>
  /** Moves the file to the path. False when there is no reserve. */
  use(path: string): boolean
  /** Moves a used file back. False when that fails. @param bytes how many bytes of the file were used */
  restore(path: string, bytes: number): Promise<boolean>
}

export function createReserve(path: string, size: number): Reserve {
  return {
    async create() {
      const exists = await access(path).then(
        () => true,
        () => false,
      )
      if (!exists) await replaceFile(path, Buffer.alloc(size))
    },
    use(segmentPath) {
      try {
        renameSync(path, segmentPath)
        return true
      } catch {
        return false
      }
    },
    async restore(segmentPath, bytes) {
      try {
        const handle = await open(segmentPath, 'r+')
        await handle.write(Buffer.alloc(bytes), 0, bytes, 0).finally(() => handle.close())
        await rename(segmentPath, path)
        return true
      } catch {
        return false
      }
    },
  }
}

/** Whether a write has failed because of a full disk or an exhausted quota. */
export const isDiskFull = (error: unknown): boolean =>
  error instanceof Error && 'code' in error && (error.code === 'ENOSPC' || error.code === 'EDQUOT')
