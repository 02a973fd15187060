// Parses and formats quiet hours: `mon-fri 22:00-07:00 sat,sun all-day Europe/Berlin`.
import type { QuietHours, Weekday } from '../../shared/api/policies.ts'
import { WEEKDAYS } from '../../shared/field-values.ts'
import { CliError, EXIT } from '../output/exit-codes.ts'

const EVERY_DAY = /^(daily|every-?day)$/
const TIMES = /^(\d{1,2}:\d\d)-(\d{1,2}:\d\d)$/
const ALL_DAY = /^all-?day$/
const RULE =
  "Quiet hours must be days with a period, such as 'mon-fri 22:00-07:00'. Days that are quiet for 24 hours, such as 'sat,sun all-day', and a time zone, such as Europe/Berlin, may follow."

/** `start` and `end` of quiet hours without a period, which have no effect. */
const NO_PERIOD = { start: '00:00', end: '23:59' }

/** @param timezone the default @throws CliError */
export function parseQuietHours(text: string, timezone: string): QuietHours {
  const quietHours: QuietHours = { ...NO_PERIOD, days: [], allDayDays: [], timezone }
  let pending: Weekday[] | null = null
  const words = text.toLowerCase().replaceAll('all day', 'all-day').split(/\s+/)
  const typed = text.replace(/all day/gi, 'all-day').split(/\s+/)
  for (const [index, word] of words.entries()) {
    const days = parseDays(word)
    const times = TIMES.exec(word)
    if (days !== null && pending === null) pending = days
    else if (times !== null) {
      Object.assign(quietHours, { start: pad(times[1]), end: pad(times[2]), days: pending ?? [...WEEKDAYS] })
      pending = null
    } else if (ALL_DAY.test(word) && pending !== null) {
      quietHours.allDayDays = pending
      pending = null
    } else if (index > 0 && index === words.length - 1 && pending === null)
      quietHours.timezone = typed[index] ?? timezone
    else throw new CliError(EXIT.usage, RULE)
  }
  if (pending !== null || quietHours.days.length + quietHours.allDayDays.length === 0)
    throw new CliError(EXIT.usage, RULE)
  return quietHours
}

const pad = (time = ''): string => time.padStart(5, '0')

/** `mon-fri`, `fri-mon`, `sat,sun`, `daily`; null: these are not days. */
function parseDays(text: string): Weekday[] | null {
  if (EVERY_DAY.test(text)) return [...WEEKDAYS]
  const found = new Set<Weekday>()
  for (const part of text.split(',')) {
    const [first, last = first, ...rest] = part
      .split('-')
      .map((name) => WEEKDAYS.findIndex((day) => name.startsWith(day)))
    if (first === undefined || last === undefined || first < 0 || last < 0 || rest.length > 0) return null
    for (let index = first; ; index = (index + 1) % WEEKDAYS.length) {
      found.add(WEEKDAYS[index] as Weekday)
      if (index === last) break
    }
  }
  return WEEKDAYS.filter((day) => found.has(day))
}

/** Returns the form that parseQuietHours accepts. */
export function formatQuietHours({ start, end, days, allDayDays, timezone }: QuietHours): string {
  const period = days.length === 0 ? [] : [`${formatDays(days)} ${start}-${end}`]
  const allDay = allDayDays.length === 0 ? [] : [`${formatDays(allDayDays)} all-day`]
  return [...period, ...allDay, timezone].join(' ')
}

function formatDays(days: readonly Weekday[]): string {
  if (days.length === WEEKDAYS.length) return 'daily'
  const [first, last] = [days[0] ?? 'mon', days.at(-1) ?? 'mon']
  const isRange = days.length > 2 && WEEKDAYS.indexOf(last) - WEEKDAYS.indexOf(first) === days.length - 1
  return isRange ? `${first}-${last}` : days.join(',')
}
