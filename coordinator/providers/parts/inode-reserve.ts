// Reserves inodes with empty files, which are removed when a box has used all others: the other boxes can run commands until
// files are deleted.
import { mkdir, readdir, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { InodeReserve } from '../provider.ts'

/** A detached command needs about 10 inodes, and an agent 32 for the output of its first commands. */
const MAX_FILES = 2000
/** The part of the inodes of a small file system. */
const FRACTION = 1 / 64

export function createInodeReserve(dir: string): InodeReserve {
  let isComplete = false
  return {
    async restore(totalInodes) {
      if (isComplete) return
      try {
        await mkdir(dir, { recursive: true, mode: 0o700 })
        const existing = new Set(await readdir(dir))
        for (let n = 0; n < Math.min(MAX_FILES, totalInodes * FRACTION); n++)
          if (!existing.has(`${n}`)) await writeFile(join(dir, `${n}`), '')
        isComplete = true
      } catch {
        // The disk is full. The next call tries again.
      }
    },
    async release() {
      isComplete = false
      await rm(dir, { recursive: true, force: true })
    },
  }
}
