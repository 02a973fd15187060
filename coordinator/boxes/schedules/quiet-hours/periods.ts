// Finds the periods of quiet hours: pure functions of the policy and an instant.
import type { QuietHours } from '../../../../shared/api/policies.ts'
import { WEEKDAYS } from '../../../../shared/field-values.ts'
import { createLocalTimes, DAY_MS, type LocalDate } from './local-time.ts'

/** Instants in milliseconds since the epoch. The period ends before `end`. */
export type Period = { start: number; end: number }

/** The periods repeat every week, apart from changes of the offset, which can join two periods in one week of the year. */
const DAYS_AROUND = 15

/** The period that contains the instant; null: the instant is not in quiet hours. */
export const findPeriod = (quietHours: QuietHours, at: number): Period | null =>
  listPeriods(quietHours, at).find(({ start, end }) => start <= at && at < end) ?? null

export const isQuiet = (quietHours: QuietHours, at: number): boolean => findPeriod(quietHours, at) !== null

/** The first start of a period after the instant; null: every time is quiet, so no period starts. */
export const nextStart = (quietHours: QuietHours, after: number): number | null =>
  listPeriods(quietHours, after).find(({ start }) => start > after)?.start ?? null

/** The periods around the instant. Overlapping and adjacent periods are one. */
function listPeriods(quietHours: QuietHours, around: number): Period[] {
  const periods = listDailyPeriods(quietHours, around)
  const joined: Period[] = []
  for (const period of periods.sort((a, b) => a.start - b.start)) {
    const last = joined.at(-1)
    if (last !== undefined && period.start <= last.end) last.end = Math.max(last.end, period.end)
    else joined.push({ ...period })
  }
  return joined
}

function listDailyPeriods({ start, end, days, allDayDays, timezone }: QuietHours, around: number): Period[] {
  const { getDate, toInstant } = createLocalTimes(timezone)
  const [startMinutes, endMinutes] = [toMinutes(start), toMinutes(end)]
  const endDay = endMinutes > startMinutes ? 0 : DAY_MS
  const today = getDate(around)
  const periods: Period[] = []
  for (let offset = -DAYS_AROUND; offset <= DAYS_AROUND; offset += 1) {
    const date = today + offset * DAY_MS
    const weekday = getWeekday(date)
    if (days.includes(weekday))
      periods.push({ start: toInstant(date, startMinutes), end: toInstant(date + endDay, endMinutes) })
    if (allDayDays.includes(weekday))
      periods.push({ start: toInstant(date, 0), end: toInstant(date + DAY_MS, 0) })
  }
  // A period inside a skipped hour has no time on that day.
  return periods.filter(({ start, end }) => start < end)
}

/** @param time HH:MM */
function toMinutes(time: string): number {
  const [hours = 0, minutes = 0] = time.split(':').map(Number)
  return hours * 60 + minutes
}

/** WEEKDAYS begins with Monday, getUTCDay() with Sunday. */
const getWeekday = (date: LocalDate): (typeof WEEKDAYS)[number] =>
  WEEKDAYS[(new Date(date).getUTCDay() + 6) % 7] ?? 'mon'
