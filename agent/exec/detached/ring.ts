// The bound on a log: which bytes of it are given up, by its size alone, so that nobody has to be told.
import { execFile } from 'node:child_process'
import { promisify } from 'node:util'

/** A file system gives back whole blocks. */
const BLOCK = 4096

/**
 * The first offset that is kept of a log with `size` bytes. Bytes are given up by the eighth of the bound, and only once
 * the log has grown beyond it: between 7/8 of `keepBytes` and all of it are there. The same sum as in native/run.c.
 */
export function headOf(size: number, keepBytes: number): number {
  if (size <= keepBytes) return 0
  const granule = Math.max(BLOCK, Math.floor(keepBytes / 8 / BLOCK) * BLOCK)
  return Math.ceil((size - keepBytes) / granule) * granule
}

/** Gives the blocks before `head` back to the file system; size and offsets stay. @throws what fallocate said */
export async function punchHead(path: string, head: number): Promise<void> {
  await promisify(execFile)('fallocate', ['--punch-hole', '--offset', '0', '--length', String(head), path])
}
