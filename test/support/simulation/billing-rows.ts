// Runs a simulated month of boxes with prices that change, and compares the rows that remain with the truth.
import type { Test } from 'tap'
import { addUser, createOwner, createTestClock } from '../workspace.ts'
import { MONTH_START, type MonthDatabase, type MonthOptions, runMonth } from './billing-month.ts'
import { computeHours, recordTruth, type TruthPrices } from './billing-truth.ts'

const HOUR = 3600
const at = (days: number, seconds: number) => MONTH_START / 1000 + days * 24 * HOUR + seconds
const compute = (nano: number) => ({
  nano,
  micro: 2 * nano + 1,
  lite: 4 * nano - 3,
  flow: 8 * nano,
  pro: 16 * nano + 7,
  max: 32 * nano,
  ultra: 64 * nano,
})
/** The prices change within hours, and at the start of one. */
const PRICES: TruthPrices = [
  { from: 0, compute: compute(9973), diskGb: 137, snapshotGb: 139 },
  { from: at(3, 1799), compute: compute(12_007), diskGb: 0, snapshotGb: 149 },
  { from: at(10, 5 * HOUR), compute: compute(10_007), diskGb: 151, snapshotGb: 0 },
  { from: at(20, 17 * HOUR + 61), compute: compute(8009), diskGb: 127, snapshotGb: 131 },
  { from: at(20, 17 * HOUR + 62), compute: compute(8011), diskGb: 128, snapshotGb: 133 },
]

export type MonthSize = Pick<MonthOptions, 'seed' | 'chargeSeed' | 'boxes' | 'changes' | 'changesPerCharge'>

/** Throws an Error with the seeds when a balance is wrong. */
export async function simulate(size: MonthSize, database: MonthDatabase) {
  const { db } = database
  const owner = await createOwner(db, createTestClock(MONTH_START))
  const members = await Promise.all(Array.from({ length: 4 }, () => addUser(db, owner, { role: 'member' })))
  await recordTruth(db)
  const users = [owner, ...members].map(({ userId }) => userId ?? '')
  try {
    const result = await runMonth({ ...size, database, owner, users, prices: PRICES })
    const entries = await db.selectFrom('billing_entries').selectAll().where('kind', '=', 'usage').execute()
    const totals = await db.selectFrom('billing_totals').selectAll().execute()
    const accounts = await db.selectFrom('billing_accounts').selectAll().execute()
    return { ...result, entries, totals, accounts, users }
  } catch (error) {
    throw new Error(
      `The month with ${JSON.stringify(size)} failed: ${error instanceof Error ? error.stack : error}`,
    )
  }
}

export type MonthRows = Awaited<ReturnType<typeof simulate>>

/** Compares each hour of each subject in the ledger, and each day and month of the totals, with the truth. */
export function assertRows(t: Test, { entries, totals, truth, until }: MonthRows): void {
  const hours = computeHours(truth, PRICES, until)
  const sum = <T>(rows: readonly T[], toKey: (row: T) => string, toAmount: (row: T) => number) => {
    const sums = new Map<string, number>()
    for (const row of rows) sums.set(toKey(row), (sums.get(toKey(row)) ?? 0) + toAmount(row))
    return sums
  }
  const compare = (actual: Map<string, number>, expected: Map<string, number>, message: string) => {
    const keys = [...new Set([...actual.keys(), ...expected.keys()])]
    const wrong = keys.filter((key) => (actual.get(key) ?? 0) !== (expected.get(key) ?? 0))
    t.same(
      wrong.slice(0, 5).map((key) => [key, actual.get(key), expected.get(key)]),
      [],
      `${keys.length} ${message}`,
    )
  }
  compare(
    sum(
      entries,
      ({ cause, user_id: user, since }) =>
        `${cause.split(':')[1]} ${user} ${Math.floor((since ?? 0) / HOUR)}`,
      ({ amount_micros: amount }) => amount,
    ),
    sum(
      hours,
      ({ subject, owner, hour }) => `${subject} ${owner} ${hour}`,
      ({ micros }) => micros,
    ),
    'hours in the ledger',
  )
  const fields = [['amount_micros', 'micros'] as const, ['compute_seconds', 'seconds'] as const]
  for (const [field, truthField] of fields)
    for (const length of ['2030-01-01'.length, '2030-01'.length])
      compare(
        sum(
          totals.filter(({ period }) => period.length === length),
          ({ period, box_id: box, user_id: user }) => `${period} ${box} ${user}`,
          (row) => row[field],
        ),
        sum(
          hours,
          ({ box, owner, hour }) =>
            `${new Date(hour * HOUR * 1000).toISOString().slice(0, length)} ${box} ${owner}`,
          (row) => row[truthField],
        ),
        `totals of ${field}, of periods with ${length} characters`,
      )
}
