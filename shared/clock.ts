// Time, passed in: everything that asks what time it is takes a Clock, so that tests need not wait.

export type Clock = {
  /** Milliseconds since the epoch. */
  now(): number
}

export const systemClock: Clock = { now: () => Date.now() }

/** Milliseconds since the epoch as RFC 3339 UTC, the form of every timestamp on the wire. */
export const toTimestamp = (ms: number): string => new Date(ms).toISOString()
export const toTimestampOrNull = (ms: number | null): string | null => (ms === null ? null : toTimestamp(ms))
