// The order of the starts of runs, as numbers that are never used twice.

export type RunSequence = {
  /** @param sequence of a stored run, in ascending order */
  restore(sequence: number): void
  /** The number of a run that is being started. @param now milliseconds since the epoch */
  next(now: number): number
  /** Called when the run has been added to the list of runs, or its start has failed. */
  settle(sequence: number): void
  /** The newest number of a run in the list. A run that is added later has a greater one. */
  current(): number
}

export function createRunSequence(): RunSequence {
  let last = 0
  const starting = new Set<number>()
  return {
    restore(sequence) {
      last = sequence
    },
    next(now) {
      // At least the time: the newest run, which had the greatest number, may have been deleted before the agent started.
      last = Math.max(last + 1, now)
      starting.add(last)
      return last
    },
    settle: (sequence) => void starting.delete(sequence),
    current: () => Math.min(last, ...Array.from(starting, (sequence) => sequence - 1)),
  }
}
