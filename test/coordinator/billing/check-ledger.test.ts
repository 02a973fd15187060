// The check of the ledger: usage over the end of a month, and differences to what is stored.

import t from 'tap'
import { chargeWorkspace } from '../../../coordinator/billing/charge.ts'
import { createMeterObserver } from '../../../coordinator/billing/meter.ts'
import { checkWorkspace } from '../../../coordinator/billing/operator/check-ledger.ts'
import { DEFAULT_PRICES } from '../../../coordinator/billing/prices.ts'
import { updateBox } from '../../../coordinator/boxes/store/boxes.ts'
import { observeRows } from '../../../coordinator/db/row-changes.ts'
import { transaction } from '../../../coordinator/db/transaction.ts'
import { onEachDatabase } from '../../support/db.ts'
import { createTestFinances } from '../../support/finances.ts'
import { createOwner, createTestBoxService, createTestClock } from '../../support/workspace.ts'

const HOUR_MS = 3_600_000

onEachDatabase(t, async (t, newDb) => {
  t.test('usage of several months is computed from the entries', async (t) => {
    const db = await newDb(t)
    const clock = createTestClock(Date.UTC(2030, 0, 31, 20))
    observeRows(db, createMeterObserver(clock))
    const owner = await createOwner(db, clock)
    const { workspaceId } = owner
    const finances = createTestFinances(db, clock)
    t.same(await checkWorkspace(db, workspaceId), [], 'there is no account')
    await transaction(db, (trx) => finances.load(trx, workspaceId))
    const box = await createTestBoxService(db, { clock }).create(owner, { tier: 'lite' })
    await transaction(db, (trx) =>
      updateBox(trx, box.id, { observed_state: 'running', updated_at: clock.now() }),
    )
    clock.advance(30 * 24 * HOUR_MS)
    await chargeWorkspace({ db, prices: DEFAULT_PRICES }, workspaceId, clock.now() / 1000)
    t.same(await checkWorkspace(db, workspaceId), [])

    await db.updateTable('billing_accounts').set({ balance_micros: 7 }).execute()
    await db.updateTable('billing_totals').set({ amount_micros: 8 }).where('period', '=', '2030-01').execute()
    await db.deleteFrom('billing_totals').where('period', '=', '2030-03').execute()
    const key = `box ${box.id} user ${owner.userId}`
    t.same(await checkWorkspace(db, workspaceId), [
      { workspaceId, what: 'balance', storedMicros: 7, computedMicros: 5_000_000 - 720 * 40_000 },
      { workspaceId, what: `total 2030-01 ${key}`, storedMicros: 8, computedMicros: 4 * 40_000 },
      { workspaceId, what: `total 2030-03 ${key}`, storedMicros: 0, computedMicros: 44 * 40_000 },
    ])
  })
})
