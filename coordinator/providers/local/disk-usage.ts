// Measures how many bytes and inodes the boxes use.
import { execFile } from 'node:child_process'
import { statSync } from 'node:fs'
import { statfs } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import type { DiskUsage, SharedDisk } from '../provider.ts'
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
 * Directories that this user cannot read are omitted. 0 when the directory does not exist.
 */
export async function measureTree(dir: string, signal: AbortSignal): Promise<DiskUsage> {
  // du does not follow symlinks, and its descent is not limited to paths of PATH_MAX bytes. The second run finds the
  // directories in the cache of the kernel.
  const kibibytes = await runDu(['-skx', '--', dir], signal)
  return { bytes: kibibytes * 1024, inodes: await runDu(['-sx', '--inodes', '--', dir], signal) }
}

/** Returns the number that du prints first. 0 when it prints none: du of busybox has no --inodes. */
function runDu(args: string[], signal: AbortSignal): Promise<number> {
  return new Promise((resolve, reject) => {
    const options = { timeout: MEASURE_TIMEOUT_MS, signal }
    execFile('nice', ['-n', '19', 'du', ...args], options, (error, stdout) => {
      const number = Number.parseInt(stdout, 10)
      // du exits with 1 when it could not read some of the entries.
      if (error !== null && error.code !== 1) reject(error)
      else resolve(Number.isNaN(number) ? 0 : number)
    })
  })
}
