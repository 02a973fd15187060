// A directory in memory for the databases of a run, where this machine has the memory. Creating the files of a Postgres database
// takes a tenth of the time there.
import { mkdtempSync, statfsSync } from 'node:fs'
import { freemem } from 'node:os'
import { join } from 'node:path'

/** Names the directory for test files. Unset: there is none. */
export const MEMORY_DIR_VARIABLE = 'BOXWOOD_TEST_MEMORY_DIR'

const SHARED_MEMORY = '/dev/shm'
const TMPFS_MAGIC = 0x01021994
/** Two files at a time have up to about 40 databases of 8 MiB each. */
const NEEDED_BYTES = 2 * 1024 ** 3

/** null: there is no such file system, or too little memory. */
export function createMemoryDir(): string | null {
  try {
    const { type, bavail, bsize } = statfsSync(SHARED_MEMORY)
    const hasSpace = bavail * bsize >= NEEDED_BYTES && freemem() >= 2 * NEEDED_BYTES
    return type === TMPFS_MAGIC && hasSpace ? mkdtempSync(join(SHARED_MEMORY, 'bw-')) : null
  } catch {
    // The directory does not exist, or is not writable.
    return null
  }
}
