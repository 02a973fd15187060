// Exponential backoff with jitter, so that clients that fail together do not retry together. Pure.

/** Returns a delay of at most `boundMs`. @param random returns a number in [0, 1) */
export type Jitter = (boundMs: number, random: () => number) => number

/** The delay is uniform in [0, boundMs). */
export const fullJitter: Jitter = (boundMs, random) => Math.floor(boundMs * random())

/** The delay is uniform in the upper half of [0, boundMs). */
export const equalJitter: Jitter = (boundMs, random) => Math.floor(boundMs * (0.5 + random() / 2))

/** The delay is always boundMs. Single clients use it, and those whose delays are so long that they do not retry together. */
export const noJitter: Jitter = (boundMs) => boundMs

export type BackoffSettings = { baseMs: number; maxMs: number }

/** Milliseconds until the next attempt. The bound of the delay is min(maxMs, baseMs · 2ⁿ) for n = `doublings`. */
export const backoffDelay = (
  doublings: number,
  { baseMs, maxMs }: BackoffSettings,
  jitter: Jitter,
  random: () => number = Math.random,
): number => jitter(Math.min(maxMs, baseMs * 2 ** doublings), random)
