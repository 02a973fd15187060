// Selects the exited processes to delete: the oldest beyond a count, an age or a total log size. Pure.
import { LOG_LIMITS } from '../../../shared/limits.ts'

export type Retention = {
  /** Records of exited processes. */
  count: number
  /** Milliseconds since the exit. */
  ageMs: number
  /** Disk space of all their logs together, in bytes. */
  totalLogBytes: number
}

const DAY_MS = 24 * 60 * 60 * 1000
export const DEFAULT_RETENTION: Retention = {
  count: 1000,
  ageMs: 7 * DAY_MS,
  totalLogBytes: LOG_LIMITS.exitedProcesses.default,
}

export type ExitedProcess = { processId: string; exitedAt: number; logBytes: number }

/** @param exited only exited processes: a running process is never deleted */
export function expiredProcessIds(exited: readonly ExitedProcess[], now: number, keep: Retention): string[] {
  const newestFirst = [...exited].sort((a, b) => b.exitedAt - a.exitedAt)
  let bytes = 0
  return newestFirst
    .filter(({ exitedAt, logBytes }, index) => {
      bytes += logBytes
      return index >= keep.count || now - exitedAt > keep.ageMs || bytes > keep.totalLogBytes
    })
    .map(({ processId }) => processId)
}
