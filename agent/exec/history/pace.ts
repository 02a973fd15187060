// How long a process that writes is left alone between two looks at its output.

/** Only the last 1 MiB is kept: so a process that writes much is told of less often, at about this many bytes a second. */
const BYTES_PER_SECOND = 128 * 1024
const LONGEST_MS = 12_000

export type Pace = {
  /** How long to wait after a look, in milliseconds. @param sent the bytes that it found */
  pauseMs(sent: number): number
  /** There is something new. @param leftMs of the pause; none is left after a silence */
  wrote(leftMs: number): void
}

/**
 * What follows a silence is told at once. While a process writes on and on, each pause is twice as long as the one before:
 * it may do so for days, and each look is a commit of the coordinator.
 * @param intervalMs the shortest pause
 */
export function createPace(intervalMs: number): Pace {
  let shortestMs = intervalMs
  return {
    pauseMs: (sent) => Math.min(LONGEST_MS, Math.max(shortestMs, (sent / BYTES_PER_SECOND) * 1000)),
    wrote(leftMs) {
      shortestMs = leftMs > 0 ? Math.min(LONGEST_MS, shortestMs * 2) : intervalMs
    },
  }
}
