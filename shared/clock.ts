// The clock interface that code takes as a parameter, so that tests control the time.

export type Clock = {
  /** Milliseconds since the epoch. */
  now(): number
}

export const systemClock: Clock = { now: () => Date.now() }

/** Formats milliseconds since the epoch as RFC 3339 UTC, the form of every timestamp on the wire. */
export const toTimestamp = (ms: number): string => new Date(ms).toISOString()
export const toTimestampOrNull = (ms: number | null): string | null => (ms === null ? null : toTimestamp(ms))
