// How long to wait before the next try.

const FIRST_MS = 500
const MOST_MS = 60_000

/** Milliseconds before try number `attempt` (from 1): full jitter under a bound that doubles from 1 s to a minute. */
export function backoff(attempt: number, random = Math.random): number {
  return Math.round(random() * Math.min(MOST_MS, FIRST_MS * 2 ** attempt))
}
