// The prices of boxes and snapshots, with the time from which each table applies.
import { readFileSync } from 'node:fs'
import { z } from 'zod'
import { TIER_NAMES, TIERS, type Tier } from '../../shared/tiers.ts'
import { validationMessage } from '../../shared/validation-message.ts'
import { StartError } from '../base/start-error.ts'
import type { MeterMode } from './store/tables.ts'

/** All prices are micro-dollars per hour. */
export type Prices = {
  /** Epoch seconds: the first second of these prices. */
  from: number
  /** A running box of each tier, with its disk. */
  compute: Readonly<Record<Tier, number>>
  /** A GB of the disk of a box that does not run. */
  diskGb: number
  /** A GB of a snapshot. */
  snapshotGb: number
}

/** Ordered by `from`. The first one also applies to everything before. */
export type PriceTable = readonly Prices[]

/** What is charged: nothing, or a box or snapshot with these properties. */
export type Rated = { mode: MeterMode; tier: Tier; megabytes: number }

/** A lite box for 4 cents an hour, the others in proportion to their memory; 10 cents per GB and month of 730 hours. */
export const DEFAULT_PRICES: PriceTable = [
  {
    from: 0,
    compute: {
      nano: 10_000,
      micro: 20_000,
      lite: 40_000,
      flow: 80_000,
      pro: 160_000,
      max: 320_000,
      ultra: 640_000,
    },
    diskGb: 137,
    snapshotGb: 137,
  },
]

/** Whether nothing is ever charged in the mode. */
export const isFree = (mode: MeterMode): boolean => mode === 'launching' || mode === 'ended'

const NANOS_PER_MICRO = 1000

/** Nano-dollars per hour: with this unit, the price of each MB of a snapshot is an integer. */
export function rateOf({ mode, tier, megabytes }: Rated, prices: Prices): number {
  if (mode === 'compute') return prices.compute[tier] * NANOS_PER_MICRO
  if (mode === 'disk' || mode === 'waking') return diskMicros(tier, prices) * NANOS_PER_MICRO
  if (mode === 'snapshot') return prices.snapshotGb * megabytes
  return 0
}

/** The micro-dollars per hour of the disk of a box that does not run. */
export const diskMicros = (tier: Tier, prices: Prices): number => TIERS[tier].diskGb * prices.diskGb

/** @param at epoch seconds */
export function pricesAt(table: PriceTable, at: number): Prices {
  const prices = table.findLast(({ from }) => from <= at) ?? table[0]
  if (prices === undefined) throw new Error('The price table is empty.')
  return prices
}

/** The parts of the interval in which the prices are the same. Epoch seconds; `until` is exclusive. */
export function splitAtPriceChanges(
  table: PriceTable,
  since: number,
  until: number,
): { seconds: number; prices: Prices }[] {
  const changes = table.map(({ from }) => from).filter((from) => from > since && from < until)
  const limits = [since, ...changes, until]
  return limits.slice(1).map((limit, index) => {
    const start = limits[index] ?? since
    return { seconds: limit - start, prices: pricesAt(table, start) }
  })
}

const MAX_MICROS = 1_000_000_000
const microsSchema = z.int().min(0).max(MAX_MICROS)

const tableSchema = z
  .array(
    z.strictObject({
      from: z.iso.datetime({ offset: true }).transform((text) => Math.floor(Date.parse(text) / 1000)),
      compute: z.strictObject(
        Object.fromEntries(TIER_NAMES.map((tier) => [tier, microsSchema])) as Record<
          Tier,
          typeof microsSchema
        >,
      ),
      diskGb: microsSchema,
      snapshotGb: microsSchema,
    }),
  )
  .min(1)
  .refine(
    (table) => table.every(({ from }, index) => index === 0 || from > (table[index - 1]?.from ?? from)),
    'must be in the order of from, and each from must occur once',
  )

/** @throws StartError when the file cannot be read or has another form */
export function readPrices(file: string): PriceTable {
  let content: unknown
  try {
    content = JSON.parse(readFileSync(file, 'utf8'))
  } catch (error) {
    throw new StartError(
      `The file of BOXWOOD_PRICES cannot be read: ${error instanceof Error ? error.message : error}`,
    )
  }
  const result = tableSchema.safeParse(content, { reportInput: true })
  if (result.success) return result.data
  throw new StartError(
    `The prices in ${file} are not valid: ${validationMessage(result.error.issues, 'prices')}. \`box docs billing\` has an example.`,
  )
}
