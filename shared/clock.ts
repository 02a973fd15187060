// The clock, passed as a parameter so that tests control the time, and the timestamp format of the API.

export type Clock = {
  /** Milliseconds since the epoch, except of the agent's running clock. */
  now(): number
}

export const systemClock: Clock = { now: () => Date.now() }

/** Formats milliseconds since the epoch as RFC 3339 UTC, the timestamp format of the API (spec §2.1). */
export const toTimestamp = (ms: number): string => new Date(ms).toISOString()
export const toTimestampOrNull = (ms: number | null): string | null => (ms === null ? null : toTimestamp(ms))
