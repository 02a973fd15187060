// Parses the times that a user types: now, a duration, a time of day, or a date and time. In the past or in the future.
import { CliError, EXIT } from '../output/exit-codes.ts'

const UNIT_MS: Record<string, number> = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 }
const DURATION = /^(\d{1,9}(\.\d{1,9})?(ms|s|m|h|d))+$/
const TIME_OF_DAY = /^(?:(yesterday|today|tomorrow) )?([01]?\d|2[0-3]):([0-5]\d)(?::([0-5]\d))?$/
/** A date, with a time of day and a zone if wanted. */
const TIME = /^\d{4}-\d\d-\d\d([T ]\d\d:\d\d(:\d\d(\.\d{1,9})?)?(Z|[+-]\d\d:?\d\d)?)?$/

/** The last millisecond of the year 9999: the API has years of four digits. */
const MAX_TIME = Date.UTC(10_000, 0) - 1
const DAY_MS = 86_400_000

/**
 * Milliseconds since the epoch. A time without a zone is local; a time of day alone is its most recent occurrence.
 * @param what the option or argument as typed, such as --since @throws CliError
 */
export function parseTime(what: string, text: string, now: number): number {
  const duration = text === 'now' ? 0 : parseDuration(text.replace(/ ago$/, ''))
  const time = duration === null ? (parseTimeOfDay(text, now) ?? parseDate(text)) : now - duration
  if (Number.isFinite(time) && time <= MAX_TIME) return Math.max(0, Math.round(time))
  throw new CliError(
    EXIT.usage,
    `${what} must be a duration such as 90s, 10m, 2h or 1d before now, or a time such as 03:14, 'yesterday 03:14', 2026-01-31T09:30 or 2026-01-31T08:30:00Z.`,
  )
}

/**
 * Milliseconds since the epoch, after `now`. A time without a zone is local; a time of day alone is its next occurrence.
 * @param what the option as typed, such as --pause-at @throws CliError
 */
export function parseFutureTime(what: string, text: string, now: number): number {
  const duration = parseDuration(text)
  const time = duration === null ? (parseNextTimeOfDay(text, now) ?? parseDate(text)) : now + duration
  if (Number.isFinite(time) && time > now && time <= MAX_TIME) return Math.round(time)
  throw new CliError(
    EXIT.usage,
    `${what} must be a time in the future, such as 18:00, 'tomorrow 09:30', 2026-01-31T09:30 or 2026-01-31T08:30:00Z, or a duration such as 90m, 2h or 1d from now.`,
  )
}

/** A unit as a word, and the space before it. */
const UNIT_WORD = /(?<=\d) ?(s|m|h|d)(?:ec(?:ond)?|in(?:ute)?|r|our|ay)s?\b(?: and)? ?/g

/** Milliseconds; null if the text is not a duration such as 10m or `10 minutes`. */
export function parseDuration(typed: string): number | null {
  const text = typed.replace(UNIT_WORD, '$1')
  if (!DURATION.test(text)) return null
  return [...text.matchAll(/([\d.]+)([a-z]+)/g)].reduce(
    (sum, [, count, unit = '']) => sum + Number(count) * (UNIT_MS[unit] ?? Number.NaN),
    0,
  )
}

/** Days from today. */
const DAYS: Record<string, number> = { yesterday: -1, today: 0, tomorrow: 1 }

type TimeOfDay = {
  /** null: no day was typed. */
  day: number | null
  /** Ascending. @param day the days from today */
  listInstants(day: number): number[]
}

/** null if the text is not a time of day. */
function matchTimeOfDay(text: string, now: number): TimeOfDay | null {
  const match = TIME_OF_DAY.exec(text)
  if (match === null) return null
  const [, day, hours, minutes, seconds = '0'] = match
  const today = new Date(now)
  return {
    day: day === undefined ? null : (DAYS[day] ?? 0),
    listInstants: (days) =>
      listInstants(
        Date.UTC(
          today.getFullYear(),
          today.getMonth(),
          today.getDate() + days,
          Number(hours),
          Number(minutes),
          Number(seconds),
        ),
      ),
  }
}

/** null if the text is not a time of day. */
function parseTimeOfDay(text: string, now: number): number | null {
  const time = matchTimeOfDay(text, now)
  if (time === null) return null
  if (time.day !== null) return (time.day > 0 ? undefined : time.listInstants(time.day).at(-1)) ?? Number.NaN
  // The clocks may have skipped the time of day on one of these days.
  return (
    [-2, -1, 0]
      .flatMap(time.listInstants)
      .filter((instant) => instant <= now)
      .at(-1) ?? Number.NaN
  )
}

/** null if the text is not a time of day. */
function parseNextTimeOfDay(text: string, now: number): number | null {
  const time = matchTimeOfDay(text, now)
  if (time === null) return null
  const days = time.day === null ? [0, 1, 2] : [time.day]
  return days.flatMap(time.listInstants).find((instant) => instant > now) ?? Number.NaN
}

/**
 * The instants at which local clocks show a time, ascending: two where the clocks are set back, none where they are set
 * forward. @param shown the time as if it were UTC
 */
function listInstants(shown: number): number[] {
  const toInstant = (offsetAt: number) => shown + new Date(offsetAt).getTimezoneOffset() * 60_000
  const instants = [...new Set([toInstant(shown - DAY_MS), toInstant(shown + DAY_MS)])]
  return instants.filter((instant) => toInstant(instant) === instant).sort((a, b) => a - b)
}

function parseDate(text: string): number {
  const date = text.slice(0, 10)
  if (!TIME.test(text) || !isCalendarDate(date)) return Number.NaN
  // JavaScript reads a date without a time as UTC.
  return Date.parse(text === date ? `${date}T00:00` : text)
}

/** Date.parse reads 30 February as 2 March. */
function isCalendarDate(date: string): boolean {
  const midnight = new Date(`${date}T00:00Z`)
  return !Number.isNaN(midnight.getTime()) && midnight.toISOString().startsWith(date)
}
