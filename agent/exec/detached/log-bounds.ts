// Bounds the size of an output log on disk by discarding its head.
import { execFile } from 'node:child_process'
import { lstatSync, statSync } from 'node:fs'
import { promisify } from 'node:util'
import type { Logger } from 'pino'
import type { DetachedProcess } from './types.ts'

/** Hole punching frees whole file system blocks. */
const BLOCK_BYTES = 4096
/** The unit of st_blocks, whatever the file system's block size is. */
const STAT_BLOCK_BYTES = 512

/**
 * The offset of the first retained byte of a log with `size` bytes. Bytes are discarded in steps of an eighth of
 * `maxBytes`, so at least 7/8 of `maxBytes` stay readable. native/run.c computes the same value: readers need no message
 * from the runner.
 */
export function firstRetainedOffset(size: number, maxBytes: number): number {
  if (size <= maxBytes) return 0
  const step = Math.max(BLOCK_BYTES, Math.floor(maxBytes / 8 / BLOCK_BYTES) * BLOCK_BYTES)
  return Math.ceil((size - maxBytes) / step) * step
}

/** Allocated bytes: holes count as zero. 0 for a missing file. lstat: a link may lead to itself. */
export const bytesOnDisk = (path: string): number =>
  (lstatSync(path, { throwIfNoEntry: false })?.blocks ?? 0) * STAT_BLOCK_BYTES

/**
 * For the shell runner, whose command writes to the logs directly: each call frees the blocks before the first retained
 * byte. File size and offsets stay unchanged. A log can exceed its bound between two calls. Where the file system
 * cannot punch holes, logs are not bounded, and the error is logged once per process.
 */
export function createHeadDiscarder(log: Logger) {
  /** Processes with a call in progress or a failed call. Further calls have no effect. */
  const busyOrFailedIds = new Set<string>()
  return async ({ processId, logs }: DetachedProcess, maxBytes: number): Promise<void> => {
    if (busyOrFailedIds.has(processId)) return
    busyOrFailedIds.add(processId)
    try {
      for (const { path } of [logs.stdout, logs.stderr]) {
        const head = firstRetainedOffset(statSync(path).size, maxBytes)
        if (head > 0 && bytesOnDisk(path) > maxBytes) await punchHole(path, head)
      }
      busyOrFailedIds.delete(processId)
    } catch (err) {
      // The id stays in `busyOrFailedIds`, so that the error is logged once.
      log.error({ err, processId }, 'cannot discard the head of an output log')
    }
  }
}

/** Node has no fallocate call. */
async function punchHole(path: string, length: number): Promise<void> {
  await promisify(execFile)('fallocate', ['--punch-hole', '--offset', '0', '--length', String(length), path])
}
