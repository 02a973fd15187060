// Computes what intervals of boxes and snapshots cost. Pure functions of the intervals and the price table.
import { type PriceTable, type Rated, rateOf, splitAtPriceChanges } from './prices.ts'

export const HOUR_SECONDS = 3600

/** Nano-dollars per hour × seconds that are one micro-dollar. */
const UNITS_PER_MICRO = 1000 * HOUR_SECONDS

/** Epoch seconds; `until` is exclusive. */
export type Interval = { since: number; until: number }

/** What a subject has cost up to the end of an interval, without the fraction of a micro-dollar that `carry` has. */
export type Cost = { micros: number; carry: number }

/**
 * The cost does not depend on how the time is divided into intervals: the fraction of a micro-dollar goes to the next interval.
 * @param carry the fraction that the earlier intervals have left
 */
export function costOf(interval: Rated & Interval, carry: number, prices: PriceTable): Cost {
  const { since, until } = interval
  if (until <= since) return { micros: 0, carry }
  const units = splitAtPriceChanges(prices, since, until).reduce(
    (sum, part) => sum + BigInt(rateOf(interval, part.prices)) * BigInt(part.seconds),
    BigInt(carry),
  )
  return { micros: Number(units / BigInt(UNITS_PER_MICRO)), carry: Number(units % BigInt(UNITS_PER_MICRO)) }
}

/** The parts of the interval in each hour, in the order of time. */
export function splitAtHours<T extends Interval>(interval: T): (T & { hour: number })[] {
  const parts: (T & { hour: number })[] = []
  let { since } = interval
  while (since < interval.until) {
    const hour = floorHour(since)
    const until = Math.min(interval.until, hour + HOUR_SECONDS)
    parts.push({ ...interval, since, until, hour })
    since = until
  }
  return parts
}

/** The start of the hour, in epoch seconds. */
export const floorHour = (seconds: number): number => Math.floor(seconds / HOUR_SECONDS) * HOUR_SECONDS

/** The day of the instant in UTC, such as 2030-01-31. */
export const toDay = (seconds: number): string => new Date(seconds * 1000).toISOString().slice(0, 10)

/** The month of the instant in UTC, such as 2030-01. */
export const toMonth = (seconds: number): string => toDay(seconds).slice(0, 7)
