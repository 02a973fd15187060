// Measures how much disk space the boxes use.
import { execFile } from 'node:child_process'
import { statSync } from 'node:fs'
import { statfs } from 'node:fs/promises'
import type { SharedDisk } from '../provider.ts'

/** Allows for a tree with millions of files. */
const MEASURE_TIMEOUT_MS = 10 * 60_000

export const createSharedDisk = (boxesDir: string, getBoxDir: (boxId: string) => string): SharedDisk => ({
  fileSystem: `local ${statSync(boxesDir).dev}`,
  measure: (boxId, signal) => measureTree(getBoxDir(boxId), signal),
  async readSpace() {
    const { bsize, bavail, blocks } = await statfs(boxesDir)
    return { freeBytes: bavail * bsize, totalBytes: blocks * bsize }
  },
})

/**
 * The allocated bytes below the directory: holes do not count, a file with several links counts once. Directories that
 * this user cannot read are omitted. 0 when the directory does not exist.
 */
function measureTree(dir: string, signal: AbortSignal): Promise<number> {
  return new Promise((resolve, reject) => {
    // du does not follow symlinks, and its descent is not limited to paths of PATH_MAX bytes.
    const args = ['-n', '19', 'du', '-skx', '--', dir]
    execFile('nice', args, { timeout: MEASURE_TIMEOUT_MS, signal }, (error, stdout) => {
      const kibibytes = Number.parseInt(stdout, 10)
      // du exits with 1 when it could not read some of the entries.
      if (error !== null && error.code !== 1) reject(error)
      else resolve(Number.isNaN(kibibytes) ? 0 : kibibytes * 1024)
    })
  })
}
