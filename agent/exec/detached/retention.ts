// Selects the exited processes to delete: the oldest beyond a count, an age or a total log size. Pure.

export type Retention = {
  /** Records of exited processes. */
  count: number
  /** Milliseconds since the exit. */
  ageMs: number
  /** Disk space of all their logs together, in bytes. */
  totalLogBytes: number
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
