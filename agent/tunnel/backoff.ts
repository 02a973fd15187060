// How long to wait before dialing again: full jitter, so that many boxes never come back together.

export type BackoffSettings = { baseMs: number; maxMs: number }

/** Uniform in [0, min(max, base·2ⁿ)), `failures` counted from 0. `random` gives [0, 1). */
export function backoffMs(
  failures: number,
  { baseMs, maxMs }: BackoffSettings,
  random: () => number,
): number {
  return Math.floor(random() * Math.min(maxMs, baseMs * 2 ** Math.min(failures, 30)))
}

/** Uniform in the upper half of the maximum: for a refusal that time alone will hardly change. */
export function slowRetryMs({ maxMs }: BackoffSettings, random: () => number): number {
  return Math.floor(maxMs * (0.5 + random() / 2))
}
