// Measures how many bytes and inodes the boxes use.
import { execFile } from 'node:child_process'
import { statSync } from 'node:fs'
import { statfs } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { type DiskUsage, MeasurementTimeoutError, type SharedDisk } from '../provider.ts'
import { createInodeReserve } from './inode-reserve.ts'

/** Allows for a tree with millions of files. */
const MEASURE_TIMEOUT_MS = 10 * 60_000

export const createSharedDisk = (boxesDir: string, getBoxDir: (boxId: string) => string): SharedDisk => ({
  fileSystem: `local ${statSync(boxesDir).dev}`,
  inodeReserve: createInodeReserve(join(dirname(boxesDir), 'inode-reserve')),
  measure: (boxId, signal) => measureTree(getBoxDir(boxId), signal),
  readSpace: () => readSpace(boxesDir),
})

/** The space of the file system of the directory. */
export async function readSpace(dir: string): ReturnType<SharedDisk['readSpace']> {
  const { bsize, bavail, blocks, ffree, files } = await statfs(dir)
  return {
    bytes: { free: bavail * bsize, total: blocks * bsize },
    inodes: files === 0 ? null : { free: ffree, total: files },
  }
}

/**
 * The allocated bytes and the inodes below the directory: holes do not count, a file with several links counts once.
 * Directories that this user cannot read are omitted. 0 when the directory does not exist. Throws MeasurementTimeoutError.
 */
export async function measureTree(
  dir: string,
  signal: AbortSignal,
  timeoutMs = MEASURE_TIMEOUT_MS,
): Promise<DiskUsage> {
  const options = { signal, timeoutMs }
  // du does not follow symlinks, and its descent is not limited to paths of PATH_MAX bytes. The second run finds the
  // directories in the cache of the kernel.
  const kibibytes = await runDu(['-skx', '--', dir], options)
  return { bytes: kibibytes * 1024, inodes: await runDu(['-sx', '--inodes', '--', dir], options) }
}

/** Returns the number that du prints first. 0 when it prints none: du of busybox has no --inodes. */
function runDu(
  args: string[],
  { signal, timeoutMs }: { signal: AbortSignal; timeoutMs: number },
): Promise<number> {
  return new Promise((resolve, reject) => {
    const options = { timeout: timeoutMs, killSignal: 'SIGKILL', signal } as const
    execFile('nice', ['-n', '19', 'du', ...args], options, (error, stdout) => {
      const number = Number.parseInt(stdout, 10)
      // du exits with 1 when it could not read some of the entries.
      if (error?.killed && !signal.aborted)
        reject(
          new MeasurementTimeoutError(
            `The files in the directory could not be counted within ${timeoutMs / 1000} s.`,
          ),
        )
      else if (error !== null && error.code !== 1) reject(error)
      else resolve(Number.isNaN(number) ? 0 : number)
    })
  })
}
