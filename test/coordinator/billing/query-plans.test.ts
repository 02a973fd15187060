// The queries of the account, the team status and the admission read the rows of one workspace, and no entries of its ledger.

import t from 'tap'
import { createMeterObserver } from '../../../coordinator/billing/meter.ts'
import { listRefunds } from '../../../coordinator/billing/store/accounts.ts'
import { observeRows } from '../../../coordinator/db/row-changes.ts'
import { transaction } from '../../../coordinator/db/transaction.ts'
import { onEachDatabase } from '../../support/db.ts'
import { createTestFinances } from '../../support/finances.ts'
import { capturePlans } from '../../support/query-plan.ts'
import { createOwner, createTestBoxService, createTestClock } from '../../support/workspace.ts'

onEachDatabase(t, async (t, newDb) => {
  t.test('the finances of a workspace', async (t) => {
    const { db, readPlans } = capturePlans(await newDb(t))
    const clock = createTestClock()
    observeRows(db, createMeterObserver(clock))
    const owner = await createOwner(db, clock)
    const { workspaceId } = owner
    await createTestBoxService(db, { clock }).create(owner, {})
    const finances = createTestFinances(db, clock, { freeCreditMicros: 0 })
    await finances.describe(workspaceId)
    for (const read of [
      () => finances.describe(workspaceId),
      () => finances.loadSpend(workspaceId),
      () => finances.loadPlanLimits(db, workspaceId),
      () => transaction(db, (trx) => finances.loadFacts(trx, owner, 'create')),
    ]) {
      await readPlans()
      await read()
      const plans = (await readPlans()).join('\n')
      t.match(plans, /billing_/)
      t.notMatch(plans, /billing_entries/)
      t.notMatch(plans, /Seq Scan/)
      t.notMatch(plans, /^SCAN/m)
    }
  })

  t.test('a refund reads the other refunds only', async (t) => {
    const { db, readPlans } = capturePlans(await newDb(t))
    await readPlans()
    await transaction(db, (trx) => listRefunds(trx, 'ws_1'))
    t.match((await readPlans()).join('\n'), /billing_refunds/)
  })
})
