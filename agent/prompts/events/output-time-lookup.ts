// Finds when a line of a log was written. Repeated lookups in output of the same time cost nothing.
import type { OutputLog } from '../../exec/detached/types.ts'

export type OutputTimeLookup = {
  /** Milliseconds since the epoch; null when unknown. @param end offset up to which the log has been read */
  find(offset: number, end: number): number | null
}

/** The index is opened again after this time: an open index grows with the output, beyond its file. */
const REOPEN_MS = 10 * 60 * 1000

export function createOutputTimeLookup(
  output: Pick<OutputLog, 'openTimes'>,
  now: () => number = () => performance.now(),
): OutputTimeLookup {
  let times = output.openTimes()
  let openedAt = now()
  let known: { start: number; end: number; at: number | null } = { start: 0, end: 0, at: null }
  return {
    find(offset, end) {
      if (offset >= known.start && offset < known.end) return known.at
      if (now() - openedAt > REOPEN_MS) {
        times = output.openTimes()
        openedAt = now()
      }
      if (times === null) return null
      const { length, at } = times.limitChunk(offset, Math.max(1, end - offset), 'base64')
      known = { start: offset, end: offset + length, at }
      return at
    },
  }
}
