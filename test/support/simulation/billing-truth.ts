// What a simulated month of boxes and snapshots costs, computed from the changes that the database has committed. Triggers
// record these changes, and the computation shares no code with coordinator/billing.
import { sql } from 'kysely'
import { dialectTraits } from '../../../coordinator/db/dialects.ts'
import type { Db } from '../../../coordinator/db/open.ts'
import { TIERS, type Tier } from '../../../shared/tiers.ts'

const COLUMNS = 'subject, box, owner, tier, observed, desired, bytes, is_free'
const boxValues = (row: string) =>
  `${row}.id, ${row}.id, ${row}.owner_user_id, ${row}.tier, ${row}.observed_state, ${row}.desired_state, 0, case when ${row}.kind = 'machine' then 1 else 0 end`
const snapshotValues = (row: string) =>
  `${row}.id, ${row}.box_id, ${row}.owner_user_id, ${row}.tier, ${row}.status, '', coalesce(${row}.content_bytes, 0), ${row}.transient`

/** The triggers use the time of setTruthTime(), not the times that the rows have. */
export async function recordTruth(db: Db): Promise<void> {
  const isPostgres = dialectTraits(db).locksRows
  const run = (text: string) => sql.raw(text).execute(db)
  const id = isPostgres ? 'bigserial primary key' : 'integer primary key autoincrement'
  await run(
    `create table truth (no ${id}, at bigint, subject text, box text, owner text, tier text, observed text, desired text, bytes bigint, is_free integer)`,
  )
  await run('create table truth_time (at bigint)')
  await run('insert into truth_time values (0)')
  for (const [table, values] of [
    ['boxes', boxValues('new')] as const,
    ['snapshots', snapshotValues('new')] as const,
  ]) {
    const insert = `insert into truth (at, ${COLUMNS}) select at, ${values} from truth_time`
    if (isPostgres) {
      await run(
        `create function truth_${table}() returns trigger language plpgsql as $$ begin ${insert}; return null; end $$`,
      )
      await run(
        `create trigger truth_${table} after insert or update on ${table} for each row execute function truth_${table}()`,
      )
    } else
      for (const event of ['insert', 'update'])
        await run(`create trigger truth_${table}_${event} after ${event} on ${table} begin ${insert}; end`)
  }
}

export const setTruthTime = (db: Db, at: number) => sql`update truth_time set at = ${at}`.execute(db)

export type TruthRow = {
  at: number
  subject: string
  box: string
  owner: string
  tier: Tier
  observed: string
  desired: string
  bytes: number
  is_free: number
}

export async function readTruth(db: Db): Promise<TruthRow[]> {
  const { rows } = await sql<TruthRow>`select * from truth order by no`.execute(db)
  return rows
}

/** In the form of the file of BOXWOOD_PRICES, with `from` in epoch seconds. */
export type TruthPrices = readonly {
  from: number
  compute: Readonly<Record<Tier, number>>
  diskGb: number
  snapshotGb: number
}[]

/** A time in which a subject has one price. Epoch seconds; `rate` in nano-dollars per hour. */
type Piece = {
  subject: string
  box: string
  owner: string
  from: number
  to: number
  rate: bigint
  runs: boolean
}

const COMPUTE = ['running', 'degraded', 'resizing', 'suspending']
const DISK = ['suspended', 'deep_sleep', 'waking', 'migrating']

function rateOf(row: TruthRow, { compute, diskGb, snapshotGb }: TruthPrices[number]): bigint {
  if (row.is_free === 1) return 0n
  if (row.observed === 'available') return BigInt(snapshotGb) * ((BigInt(row.bytes) + 999_999n) / 1_000_000n)
  if (isComputing(row)) return BigInt(compute[row.tier]) * 1000n
  return DISK.includes(row.observed) ? BigInt(TIERS[row.tier].diskGb * diskGb) * 1000n : 0n
}

const isComputing = ({ observed, desired, is_free: isFree }: TruthRow): boolean =>
  isFree === 0 && (COMPUTE.includes(observed) || (observed === 'migrating' && desired === 'running'))

/** @param until epoch seconds */
function* listPieces(rows: readonly TruthRow[], prices: TruthPrices, until: number): Generator<Piece> {
  for (const [subject, changes] of Map.groupBy(rows, (row) => row.subject))
    for (const [index, row] of changes.entries()) {
      const end = Math.min(until, Math.floor((changes[index + 1]?.at ?? Number.POSITIVE_INFINITY) / 1000))
      let from = Math.floor(row.at / 1000)
      while (from < end) {
        const now = from
        const current = prices.findLast((each) => each.from <= now) ?? prices[0]
        if (current === undefined) throw new Error('there are no prices')
        const to = Math.min(end, prices.find((each) => each.from > now)?.from ?? end)
        const { box, owner } = row
        yield { subject, box, owner, from, to, rate: rateOf(row, current), runs: isComputing(row) }
        from = to
      }
    }
}

/** Nano-dollars per hour × seconds in a micro-dollar. */
const UNIT = 3_600_000n

/** Micro-dollars of all subjects until the instant, rounded down once for each. */
export function computeCost(rows: readonly TruthRow[], prices: TruthPrices, until: number): number {
  const sums = new Map<string, bigint>()
  for (const { subject, from, to, rate } of listPieces(rows, prices, until))
    sums.set(subject, (sums.get(subject) ?? 0n) + rate * BigInt(to - from))
  return Number([...sums.values()].reduce((sum, units) => sum + units / UNIT, 0n))
}

const HOUR = 3600

export type TruthHour = {
  subject: string
  box: string
  owner: string
  hour: number
  micros: number
  seconds: number
}

/** The cost and the time in which the box ran, of each subject and owner in each hour. */
export function computeHours(rows: readonly TruthRow[], prices: TruthPrices, until: number): TruthHour[] {
  const hours = new Map<string, TruthHour>()
  const sums = new Map<string, bigint>()
  for (const { subject, box, owner, from, to, rate, runs } of listPieces(rows, prices, until))
    for (let start = from; start < to; ) {
      const hour = Math.floor(start / HOUR)
      const end = Math.min(to, (hour + 1) * HOUR)
      const before = sums.get(subject) ?? 0n
      const after = before + rate * BigInt(end - start)
      sums.set(subject, after)
      const key = `${subject} ${owner} ${hour}`
      const sum = hours.get(key) ?? { subject, box, owner, hour, micros: 0, seconds: 0 }
      sum.micros += Number(after / UNIT - before / UNIT)
      if (runs) sum.seconds += end - start
      hours.set(key, sum)
      start = end
    }
  return [...hours.values()].filter(({ micros, seconds }) => micros > 0 || seconds > 0)
}
