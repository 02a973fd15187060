// Selects which records of exited processes to delete: the oldest, when they are too many, too old or too large. Pure.

export type Retention = {
  /** Records of exited processes. */
  count: number
  /** Milliseconds since the exit. */
  ageMs: number
  /** Disk space of all their logs together, in bytes. */
  logBytes: number
}

export type ExitedProcess = { processId: string; exitedAt: number; logBytes: number }

/** @param exited running processes are not passed in: they are never deleted */
export function expiredProcessIds(exited: readonly ExitedProcess[], now: number, keep: Retention): string[] {
  const newestFirst = [...exited].sort((a, b) => b.exitedAt - a.exitedAt)
  let bytes = 0
  return newestFirst
    .filter(({ exitedAt, logBytes }, index) => {
      bytes += logBytes
      return index >= keep.count || now - exitedAt > keep.ageMs || bytes > keep.logBytes
    })
    .map(({ processId }) => processId)
}
