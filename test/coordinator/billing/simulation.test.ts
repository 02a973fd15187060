// A simulated month of 200 boxes: the balance and the ledger equal the cost of the changes that were committed, at any moment.
import { Kysely } from 'kysely'
import t from 'tap'
import type { Tables } from '../../../coordinator/db/schema.ts'
import {
  assertRows,
  type MonthRows,
  type MonthSize,
  simulate,
} from '../../support/simulation/billing-rows.ts'
import type { KillablePoint } from '../../support/simulation/faults.ts'
import { createKillableDriver } from '../../support/simulation/killable-driver.ts'
import { createMemoryDatabase } from '../../support/simulation/memory-database.ts'

async function simulateInMemory(size: MonthSize) {
  const { dialect, driver, db, close } = await createMemoryDatabase()
  const connect = (point: KillablePoint) => {
    const createDriver = () => createKillableDriver(driver, point)
    return new Kysely<Tables>({ dialect: { ...dialect, createDriver } })
  }
  try {
    return await simulate(size, { db, connect })
  } finally {
    await close()
  }
}

/** The rows with the positions of ids in the history instead of the ids, which are random. */
function normalize({ entries, totals, accounts, truth, users }: MonthRows) {
  const positions = new Map(users.map((id, index) => [id, `user ${index}`]))
  for (const { subject } of truth)
    if (!positions.has(subject)) positions.set(subject, `subject ${positions.size}`)
  const positionOf = (id: string | null) => (id === null ? null : (positions.get(id) ?? id))
  const rename = <T extends { box_id: string | null; user_id: string | null }>(row: T) => ({
    ...row,
    workspace_id: '',
    box_id: positionOf(row.box_id),
    user_id: positionOf(row.user_id),
  })
  const sort = <T>(rows: T[]) => rows.map((row) => JSON.stringify(row)).sort()
  return {
    entries: sort(
      entries.map(({ cause, note, ...entry }) => {
        const [kind, subject = '', since] = cause.split(':')
        return { ...rename(entry), cause: [kind, positionOf(subject), since], note: positionOf(note) }
      }),
    ),
    totals: sort(totals.map(rename)),
    accounts: sort(accounts.map((account) => ({ ...account, workspace_id: '' }))),
  }
}

const BIG: MonthSize = { seed: 1, chargeSeed: 1, boxes: 200, changes: 3000, changesPerCharge: 250 }

t.test('a month of 200 boxes', async (t) => {
  const result = await simulateInMemory(BIG)
  t.ok(result.kills > 100, `the coordinator was killed ${result.kills} times`)
  assertRows(t, result)
})

t.test('other times of charges and another run leave the same rows', async (t) => {
  const size: MonthSize = { seed: 2, chargeSeed: 1, boxes: 20, changes: 500, changesPerCharge: 30 }
  const first = normalize(await simulateInMemory(size))
  t.ok(first.entries.length > 1000, `there are ${first.entries.length} entries`)
  t.ok(JSON.stringify(normalize(await simulateInMemory(size))) === JSON.stringify(first), 'the same rows')
  const { entries, totals } = normalize(
    await simulateInMemory({ ...size, chargeSeed: 2, changesPerCharge: 200 }),
  )
  t.same(entries.filter((entry, index) => entry !== first.entries[index]).slice(0, 5), [])
  t.same(totals.filter((total, index) => total !== first.totals[index]).slice(0, 5), [])
})
