// Parses --since: a time, or a duration before now.
import { CliError, EXIT } from '../exit-codes.ts'

const UNIT_MS: Record<string, number> = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 }
const DURATION = /^(\d{1,9}(\.\d{1,9})?(ms|s|m|h|d))+$/
/** A date, with a time of day and a zone if wanted. */
const TIME = /^\d{4}-\d\d-\d\d([T ]\d\d:\d\d(:\d\d(\.\d{1,9})?)?(Z|[+-]\d\d:?\d\d)?)?$/

/** Milliseconds since the epoch. A time without a zone is local. @throws CliError */
export function parseSince(text: string, now: number): number {
  const time = DURATION.test(text) ? now - parseDuration(text) : parseTime(text)
  if (Number.isFinite(time) && time <= MAX_TIME) return Math.max(0, Math.round(time))
  throw new CliError(
    EXIT.usage,
    '--since must be a duration such as 90s, 10m, 2h or 1d, or a time such as 2026-01-31T09:30 or 2026-01-31T08:30:00Z.',
  )
}

/** The last millisecond of the year 9999: the API has years of four digits. */
const MAX_TIME = Date.UTC(10_000, 0) - 1

const parseDuration = (text: string): number =>
  [...text.matchAll(/([\d.]+)([a-z]+)/g)].reduce(
    (sum, [, count, unit = '']) => sum + Number(count) * (UNIT_MS[unit] ?? Number.NaN),
    0,
  )

// JavaScript reads a date without a time as UTC.
const parseTime = (text: string): number =>
  TIME.test(text) ? Date.parse(text.length === 10 ? `${text}T00:00` : text) : Number.NaN
