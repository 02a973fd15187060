// Limits the lines of a log that clients without a credential can cause.
import type { Clock } from '../../../shared/clock.ts'

/** The number of lines with this key that were suppressed since the last one; null: suppress this one too. */
export type LineLimiter = (key: string) => { suppressed: number } | null

/** Lines with other keys count as lines with this one. */
const OTHERS = ''

/**
 * Allows one line per key and interval.
 * @param options.maxKeys the number of different keys in an interval. All further keys share one
 */
export function createLineLimiter(
  clock: Clock,
  { intervalMs = 60_000, maxKeys = 100 }: { intervalMs?: number; maxKeys?: number } = {},
): LineLimiter {
  /** Ordered by the time of the last line, oldest first. */
  const entries = new Map<string, { loggedAt: number; suppressed: number }>()

  /** An entry with suppressed lines is kept while there is space: its next line has their number. */
  function makeSpace(now: number): void {
    for (const [key, { loggedAt }] of entries) {
      if (entries.size < maxKeys || now - loggedAt < intervalMs) return
      entries.delete(key)
    }
  }

  return (anyKey) => {
    const now = clock.now()
    if (!entries.has(anyKey)) makeSpace(now)
    const key = entries.has(anyKey) || entries.size < maxKeys ? anyKey : OTHERS
    const entry = entries.get(key)
    if (entry !== undefined && now - entry.loggedAt < intervalMs) {
      entry.suppressed += 1
      return null
    }
    entries.delete(key)
    entries.set(key, { loggedAt: now, suppressed: 0 })
    return { suppressed: entry?.suppressed ?? 0 }
  }
}
