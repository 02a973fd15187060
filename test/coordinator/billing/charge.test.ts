// Charging usage: the ledger, the balance and the totals, whenever the charge runs.

import t from 'tap'
import { chargeWorkspace } from '../../../coordinator/billing/charge.ts'
import { createMeterObserver } from '../../../coordinator/billing/meter.ts'
import { DEFAULT_PRICES } from '../../../coordinator/billing/prices.ts'
import { sumEntries } from '../../../coordinator/billing/store/accounts.ts'
import { updateBox } from '../../../coordinator/boxes/store/boxes.ts'
import type { Db } from '../../../coordinator/db/open.ts'
import { observeRows } from '../../../coordinator/db/row-changes.ts'
import { transaction } from '../../../coordinator/db/transaction.ts'
import { onEachDatabase } from '../../support/db.ts'
import { createTestFinances } from '../../support/finances.ts'
import { createOwner, createTestBoxService, createTestClock } from '../../support/workspace.ts'

const MINUTE_MS = 60_000
const START = Date.UTC(2030, 0, 31, 22)

async function createBilling(db: Db) {
  const clock = createTestClock(START)
  observeRows(db, createMeterObserver(clock))
  const owner = await createOwner(db, clock)
  const boxes = createTestBoxService(db, { clock })
  const finances = createTestFinances(db, clock)
  const { workspaceId } = owner
  await transaction(db, (trx) => finances.load(trx, workspaceId))
  const box = await boxes.create(owner, { tier: 'lite' })
  const setState = (observed_state: 'running' | 'suspended' | 'terminated') =>
    transaction(db, (trx) => updateBox(trx, box.id, { observed_state, updated_at: clock.now() }))
  const charge = (until: number) => chargeWorkspace({ db, prices: DEFAULT_PRICES }, workspaceId, until / 1000)
  const readEntries = () =>
    db
      .selectFrom('billing_entries')
      .select(['cause', 'amount_micros', 'since', 'until'])
      .where('kind', '=', 'usage')
      .orderBy('since')
      .execute()
  return { clock, owner, workspaceId, finances, box, setState, charge, readEntries }
}

onEachDatabase(t, async (t, newDb) => {
  t.test(
    'a box is charged from when it runs, by the second, and for its disk while it does not',
    async (t) => {
      const db = await newDb(t)
      const { clock, workspaceId, finances, box, setState, charge, readEntries } = await createBilling(db)
      clock.advance(10 * MINUTE_MS)
      await setState('running')
      clock.advance(90 * MINUTE_MS)
      const running = await finances.describe(workspaceId)
      t.equal(running.balanceMicros, 5_000_000 - 60_000, '90 minutes of 40,000 micro-dollars')
      t.equal(running.burnMicrosPerHour, 40_000)
      await setState('suspended')
      clock.advance(60 * MINUTE_MS)
      const suspended = await finances.describe(workspaceId)
      t.equal(suspended.burnMicrosPerHour, 40 * 137, 'the disk of a lite box has 40 GB')
      t.equal(suspended.balanceMicros, 5_000_000 - 60_000 - 5480)

      const before = await finances.loadSpend(workspaceId)
      await charge(START + 2 * 60 * MINUTE_MS)
      await charge(START + 2 * 60 * MINUTE_MS)
      const entries = await readEntries()
      t.equal(entries.length, 2, 'one entry for each hour')
      t.same(
        entries.map(({ amount_micros: amount }) => amount),
        [33_333, 26_667 + 1826],
        'the fraction of a micro-dollar goes to the next hour',
      )
      t.equal(await sumEntries(db, workspaceId), 5_000_000 - 33_333 - 28_493)
      const after = await finances.describe(workspaceId)
      t.equal(
        after.balanceMicros,
        suspended.balanceMicros,
        'a charge does not change the balance at this moment',
      )
      t.same(await finances.loadSpend(workspaceId), before)
      t.same([...before.cycleByBox], [[box.id, 3654]], 'the cycle began after two hours')
    },
  )

  t.test('a charge in one go has the entries of hourly charges', async (t) => {
    const results = []
    for (const isHourly of [true, false]) {
      const db = await newDb(t)
      const { clock, setState, charge, readEntries } = await createBilling(db)
      await setState('running')
      for (let minutes = 0; minutes < 300; minutes += 20) {
        clock.advance(20 * MINUTE_MS)
        if (minutes === 100) await setState('suspended')
        if (minutes === 180) await setState('running')
        if (minutes === 260) await setState('terminated')
        if (isHourly && minutes % 60 === 40) await charge(clock.now())
      }
      await charge(clock.now())
      const entries = await readEntries()
      results.push(
        entries.map(({ cause, ...entry }) => ({ ...entry, hasSubject: cause.startsWith('usage:') })),
      )
      t.same(
        await db.selectFrom('billing_meters').selectAll().execute(),
        [],
        'the meter of a deleted box ends',
      )
      t.same(await db.selectFrom('billing_segments').selectAll().execute(), [])
    }
    t.equal(results[0]?.length, 5)
    t.same(results[0], results[1])
  })
})
