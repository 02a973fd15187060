// Billing on each database: a simulated month, and charges, requests and changes of boxes at the same time.

import t from 'tap'
import { createAdmit } from '../../../coordinator/admission/admit.ts'
import { createMeterObserver } from '../../../coordinator/billing/meter.ts'
import { DEFAULT_PRICES } from '../../../coordinator/billing/prices.ts'
import { lockAccount, sumEntries, updateAccount } from '../../../coordinator/billing/store/accounts.ts'
import { createBalanceWatch } from '../../../coordinator/billing/watch-balance.ts'
import { setObservedState } from '../../../coordinator/boxes/lifecycle/set-observed-state.ts'
import { ALLOWED_TRANSITIONS } from '../../../coordinator/boxes/lifecycle/transitions.ts'
import { countLiveBoxes } from '../../../coordinator/boxes/lookups.ts'
import { createSnapshotService } from '../../../coordinator/boxes/snapshots/service.ts'
import { lockBox } from '../../../coordinator/db/lock-box.ts'
import { observeRows } from '../../../coordinator/db/row-changes.ts'
import { transaction } from '../../../coordinator/db/transaction.ts'
import { ApiError } from '../../../shared/errors.ts'
import { NO_BOX_SECRETS } from '../../support/box-hooks.ts'
import { onEachDatabase } from '../../support/db.ts'
import { createTestFinances } from '../../support/finances.ts'
import { createSeededRandom } from '../../support/random.ts'
import { TEST_HOST } from '../../support/replica.ts'
import { assertRows, simulate } from '../../support/simulation/billing-rows.ts'
import { computeCost, readTruth, recordTruth, setTruthTime } from '../../support/simulation/billing-truth.ts'
import { createOwner, createTestBoxService, createTestClock } from '../../support/workspace.ts'

const HOUR_MS = 3_600_000
const START = Date.UTC(2030, 0, 1)
const CREDIT = 500_000_000

onEachDatabase(t, async (t, newDb) => {
  t.test('a month of few boxes', async (t) => {
    const size = { seed: 3, chargeSeed: 1, boxes: 10, changes: 120, changesPerCharge: 20 }
    assertRows(t, await simulate(size, { db: await newDb(t), connect: null }))
  })

  t.test('requests, changes and charges at once neither fail nor count twice', async (t) => {
    const db = await newDb(t)
    const clock = createTestClock(START)
    const random = createSeededRandom(1)
    observeRows(db, createMeterObserver(clock))
    const owner = await createOwner(db, clock)
    const { workspaceId } = owner
    await recordTruth(db)
    await setTruthTime(db, START)
    const finances = createTestFinances(db, clock, { freeCreditMicros: CREDIT })
    const admit = createAdmit({ clock, countLiveBoxes, loadBilling: finances.loadFacts })
    const boxes = createTestBoxService(db, { clock, admit })
    const snapshots = createSnapshotService({
      db,
      clock,
      host: TEST_HOST,
      boxes,
      boxSecrets: NO_BOX_SECRETS,
      providers: { byRegion: new Map() },
      admit,
      schedule: () => undefined,
      loadPlanLimits: async () => ({ snapshots: 1000 }),
    })
    const watch = createBalanceWatch({
      db,
      clock,
      log: { info: () => undefined },
      prices: DEFAULT_PRICES,
      finances,
      warnBelowHours: 24,
      collect: async () => undefined,
      detectFullCpu: async () => undefined,
      scheduleBox: () => undefined,
    })
    await transaction(db, async (trx) => {
      await finances.load(trx, workspaceId)
      await updateAccount(trx, workspaceId, { paid_at: START })
    })
    for (let count = 0; count < 8; count++) await boxes.create(owner, { tier: 'nano' })
    const ids = (await boxes.list(owner)).map(({ id }) => id)

    const move = (id: string, choice: number) =>
      transaction(db, async (trx) => {
        const box = await lockBox(trx, id)
        const states = box ? ALLOWED_TRANSITIONS[box.observed_state].filter((to) => to !== 'terminating') : []
        const to = states[Math.floor(choice * states.length)]
        if (box && to && to !== 'provision_failed')
          await setObservedState(trx, box, to, 'simulated', 'system', clock.now())
      })
    const choose = (): Promise<unknown> => {
      const [kind, id = ''] = [random(), ids[Math.floor(random() * ids.length)]]
      if (kind < 0.3) return move(id, random())
      if (kind < 0.4) return boxes.wake(owner, id)
      if (kind < 0.5) return boxes.suspend(owner, id)
      if (kind < 0.6) return boxes.create(owner, { tier: 'nano' })
      if (kind < 0.65) return snapshots.create(owner, { boxId: id, name: 'copy' })
      if (kind < 0.7) return finances.describe(workspaceId)
      if (kind < 0.8) return finances.loadSpend(workspaceId)
      return watch(workspaceId, new AbortController().signal)
    }

    for (let round = 0; round < 12; round++) {
      clock.advance(Math.floor(random() * 1.5 * HOUR_MS))
      await setTruthTime(db, clock.now())
      const results = await Promise.allSettled(Array.from({ length: 24 }, choose))
      for (const result of results)
        if (result.status === 'rejected' && !(result.reason instanceof ApiError)) throw result.reason
      const { balanceMicros } = await finances.describe(workspaceId)
      const cost = computeCost(await readTruth(db), DEFAULT_PRICES, Math.floor(clock.now() / 1000))
      t.equal(balanceMicros, CREDIT - cost, `round ${round}`)
    }
    const account = await transaction(db, (trx) => lockAccount(trx, workspaceId))
    t.equal(await sumEntries(db, workspaceId), account?.balance_micros)
  })
})
