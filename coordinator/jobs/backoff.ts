// Exponential backoff with full jitter between the attempts of a lifecycle step.

const BASE_MS = 500
const MAX_MS = 60_000

/** Milliseconds to wait after `failedAttempts` failures (1 or more). The upper bound doubles from 1 s to 60 s. */
export function backoffDelay(failedAttempts: number, random = Math.random): number {
  return Math.round(random() * Math.min(MAX_MS, BASE_MS * 2 ** failedAttempts))
}
