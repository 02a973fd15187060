// The billing cycle: the calendar month in UTC.
import { toTimestamp } from '../../shared/clock.ts'

/** The cycle that contains the instant. It ends before `end`. */
export function findCycle(now: number): { start: string; end: string } {
  const date = new Date(now)
  const [year, month] = [date.getUTCFullYear(), date.getUTCMonth()]
  return { start: toTimestamp(Date.UTC(year, month, 1)), end: toTimestamp(Date.UTC(year, month + 1, 1)) }
}
