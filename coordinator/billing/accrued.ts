// Computes what has been used since the last charge, and what is used now.
import { computeCharges, divideAt } from './charge.ts'
import { type PriceTable, pricesAt, rateOf } from './prices.ts'
import type { MeteredSubject } from './store/meters.ts'
import type { BillingMeterRow } from './store/tables.ts'

/** What a box has used for its owner, with its snapshots. */
export type Usage = { boxId: string; userId: string; hour: number; micros: number; computeSeconds: number }

/** The usage until the instant that is not in the ledger. @param at epoch seconds */
export function listAccrued(subjects: readonly MeteredSubject[], at: number, prices: PriceTable): Usage[] {
  return subjects.flatMap(({ meter, segments }) => {
    const { due } = divideAt(segments, meter, at)
    return computeCharges(due, meter.carry, prices).charges.map(
      ({ segment, hour, micros, computeSeconds }) => ({
        boxId: segment.box_id,
        userId: segment.user_id,
        hour,
        micros,
        computeSeconds,
      }),
    )
  })
}

export const sumMicros = (usage: readonly { micros: number }[]): number =>
  usage.reduce((sum, { micros }) => sum + micros, 0)

const NANOS_PER_MICRO = 1000

/** Micro-dollars per hour: what boxes and snapshots cost now, and what boxes that are starting will cost more. */
export function burnOf(
  meters: readonly BillingMeterRow[],
  at: number,
  table: PriceTable,
): { burn: number; reserved: number } {
  const prices = pricesAt(table, at)
  const nanos = meters.reduce((sum, meter) => sum + rateOf(meter, prices), 0)
  const reservedNanos = meters.reduce((sum, meter) => {
    if (meter.mode !== 'launching' && meter.mode !== 'waking') return sum
    return sum + rateOf({ ...meter, mode: 'compute' }, prices) - rateOf(meter, prices)
  }, 0)
  return { burn: Math.ceil(nanos / NANOS_PER_MICRO), reserved: Math.ceil(reservedNanos / NANOS_PER_MICRO) }
}
