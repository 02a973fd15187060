// The ticks of the time axis, at full minutes, hours and days of the time zone of the browser.
import { formatLocalClock, formatLocalDate } from '../local-time.ts'
import { getSpan, type Range } from './range.ts'

export type Tick = { at: number; label: string }

const MINUTE = 60
const HOUR = 3_600
const DAY = 86_400
/** Seconds. */
const STEPS = [
  ...[5, 10, 30, MINUTE, 2 * MINUTE, 5 * MINUTE, 10 * MINUTE, 30 * MINUTE],
  ...[HOUR, 2 * HOUR, 3 * HOUR, 6 * HOUR, 12 * HOUR, DAY, 2 * DAY, 5 * DAY, 10 * DAY],
]

/** Ascending. @param maxCount the most ticks that have space */
export function listTicks(range: Range, maxCount: number): Tick[] {
  const span = getSpan(range) / 1000
  const step = STEPS.find((seconds) => span / seconds <= Math.max(1, maxCount)) ?? 10 * DAY
  const ticks: Tick[] = []
  for (const at of step < DAY ? listTimes(range, step) : listDays(range, step / DAY))
    if (at >= range.from && at <= range.to && at > (ticks.at(-1)?.at ?? 0))
      ticks.push({ at, label: formatLabel(at, step) })
  return ticks
}

/** Each day begins at its own midnight: after a change of the clock, the ticks are at full hours again. */
function* listTimes({ from, to }: Range, step: number): Generator<number> {
  for (const midnight of listDays({ from: from - DAY * 1000, to }, 1)) {
    const date = new Date(midnight)
    const [year, month, day] = [date.getFullYear(), date.getMonth(), date.getDate()]
    // Two hours more than the largest change of the clock.
    const first = Math.max(0, Math.floor((from - midnight) / 1000 / step) - (2 * HOUR) / step)
    for (let index = Math.floor(first); index * step < DAY; index += 1) {
      const at = new Date(year, month, day, 0, 0, index * step).getTime()
      if (at > to) return
      yield at
    }
  }
}

function* listDays({ from, to }: Range, step: number): Generator<number> {
  const date = new Date(from)
  date.setHours(0, 0, 0, 0)
  for (; date.getTime() <= to; date.setDate(date.getDate() + 1))
    if (getDayNumber(date) % step === 0) yield date.getTime()
}

/** The ticks of several days do not depend on the range. */
const getDayNumber = (date: Date): number =>
  Date.UTC(date.getFullYear(), date.getMonth(), date.getDate()) / 1000 / DAY

function formatLabel(at: number, step: number): string {
  const clock = formatLocalClock(at, step < MINUTE)
  return step >= DAY || clock === '00:00' ? formatLocalDate(at).slice(5) : clock
}
