// Reconnect delays with full jitter, so that many boxes do not reconnect at the same time.

export type BackoffSettings = { baseMs: number; maxMs: number }

/**
 * Uniform in [0, min(maxMs, baseMs · 2ⁿ)) for n previous failures.
 * @param random returns a number in [0, 1)
 */
export function backoffDelay(
  failures: number,
  { baseMs, maxMs }: BackoffSettings,
  random: () => number,
): number {
  return Math.floor(random() * Math.min(maxMs, baseMs * 2 ** Math.min(failures, 30)))
}

/** Uniform in the upper half of the maximum: for a rejection that a retry is unlikely to change. */
export function maxBackoffDelay({ maxMs }: BackoffSettings, random: () => number): number {
  return Math.floor(maxMs * (0.5 + random() / 2))
}
