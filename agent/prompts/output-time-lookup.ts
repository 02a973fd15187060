// Finds when a line of a log was written. Repeated lookups in output of the same time cost nothing.
import type { OutputTimes } from '../exec/detached/output-times.ts'

export type OutputTimeLookup = {
  /** Milliseconds since the epoch; null when unknown. @param end offset up to which the log has been read */
  find(offset: number, end: number): number | null
}

/** @param times null: the log has no times */
export function createOutputTimeLookup(times: OutputTimes | null): OutputTimeLookup {
  let known: { start: number; end: number; at: number | null } = { start: 0, end: 0, at: null }
  return {
    find(offset, end) {
      if (times === null) return null
      if (offset < known.start || offset >= known.end) {
        const { length, at } = times.limitChunk(offset, Math.max(1, end - offset), 'base64')
        known = { start: offset, end: offset + length, at }
      }
      return known.at
    },
  }
}
