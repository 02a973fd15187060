// Which records of ended processes are given up: the oldest, when they are too many, too old or too large together.

export type Retention = {
  /** Records of ended processes. */
  count: number
  ageMs: number
  /** What their logs take on the disk, together. */
  logBytes: number
}

export type Ended = { processId: string; endedAt: number; logBytes: number }

/** The ids to give up. What runs is no matter of this. */
export function surplus(ended: readonly Ended[], now: number, keep: Retention): string[] {
  const newestFirst = [...ended].sort((a, b) => b.endedAt - a.endedAt)
  let bytes = 0
  return newestFirst
    .filter(({ endedAt, logBytes }, index) => {
      bytes += logBytes
      return index >= keep.count || now - endedAt > keep.ageMs || bytes > keep.logBytes
    })
    .map(({ processId }) => processId)
}
