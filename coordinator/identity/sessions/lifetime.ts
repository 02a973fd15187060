// How long sessions and codes are valid, and how often codes may be requested and typed.

const MINUTE_MS = 60_000
const HOUR_MS = 60 * MINUTE_MS
const DAY_MS = 24 * HOUR_MS

export const SESSION = {
  /** A session expires after this time without use. */
  idleMs: 14 * DAY_MS,
  /** A session expires at the latest this long after the sign-in. */
  maxMs: 90 * DAY_MS,
  /** A use is stored when the stored one is older. */
  touchMs: HOUR_MS,
  /** Sessions of a user. The least recently used ones are ended first. */
  perUser: 50,
} as const

export const CODE = {
  validMs: 15 * MINUTE_MS,
  /** Failed attempts per code. */
  attempts: 5,
  /**
   * Codes per email address in `windowMs`, for all clients together. Beyond it, only a client with a session of the address gets
   * codes. The limit bounds the mails, and with `attempts` the guesses: 150 of 26 thousand million codes in an hour.
   */
  codesPerEmail: 30,
  windowMs: HOUR_MS,
  /** Rows are kept longer than the limit needs. */
  keptMs: DAY_MS,
  /** A new code for an unverified key is sent to the address of the last one. */
  keyCodeKeptMs: 8 * DAY_MS,
} as const

export const getSessionExpiry = (signedInAt: number, now: number): number =>
  Math.min(now + SESSION.idleMs, signedInAt + SESSION.maxMs)
