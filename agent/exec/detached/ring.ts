// The bound on a log: which bytes of it are given up, by its size alone, so that nobody has to be told.
import { execFile } from 'node:child_process'
import { statSync } from 'node:fs'
import { promisify } from 'node:util'
import type { FastifyBaseLogger } from 'fastify'
import type { DetachedProcess } from './types.ts'

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

/** Where holes take none. */
export const bytesOnDisk = (path: string): number =>
  (statSync(path, { throwIfNoEntry: false })?.blocks ?? 0) * STAT_BLOCK

/** The unit of st_blocks, whatever the blocks of the file system are. */
const STAT_BLOCK = 512

/**
 * For a command that writes to its logs itself, as it does where its runner is a script: gives the blocks before the head
 * back to the file system, each time it is called. Size and offsets stay. Between two calls a log may grow beyond its
 * bound, and where the file system cannot do it there is no bound: the log says so, once.
 */
export function createBounds(log: FastifyBaseLogger) {
  const busy = new Set<string>()
  return async ({ processId, logs }: DetachedProcess, keepBytes: number): Promise<void> => {
    if (busy.has(processId)) return
    busy.add(processId)
    try {
      for (const { path } of [logs.stdout, logs.stderr]) {
        const head = headOf(statSync(path).size, keepBytes)
        if (head > 0 && bytesOnDisk(path) > keepBytes) await punchHead(path, head)
      }
      busy.delete(processId)
    } catch (error) {
      // It stays busy: once said is enough.
      log.error({ err: error, processId }, 'its log cannot be bounded')
    }
  }
}

/** Node has no call for it. @throws what fallocate said */
async function punchHead(path: string, head: number): Promise<void> {
  await promisify(execFile)('fallocate', ['--punch-hole', '--offset', '0', '--length', String(head), path])
}
