// Full CPU for hours on free credit is flagged once, by the stored metrics.
import t, { type Test } from 'tap'
import { createFullCpuDetector } from '../../../coordinator/billing/detect-full-cpu.ts'
import { DEFAULT_PRICES } from '../../../coordinator/billing/prices.ts'
import { createFinanceService } from '../../../coordinator/billing/service.ts'
import { upsertMeter } from '../../../coordinator/billing/store/meters.ts'
import { transaction } from '../../../coordinator/db/transaction.ts'
import { sqliteForTest } from '../../support/db.ts'
import { sample, setUp } from '../history/metrics/support.ts'

/** One sample of each bucket of an average. */
const STEP = 300
const HOUR = 3600

async function createDetector(t: Test) {
  const metrics = await setUp(await sqliteForTest(t))
  const { db, clock, owner, boxId } = metrics
  const { workspaceId, userId } = owner
  const finances = createFinanceService({
    db,
    clock,
    prices: DEFAULT_PRICES,
    freeCreditMicros: 5_000_000,
    warnBelowHours: 24,
    billingUrl: null,
  })
  const warnings: object[] = []
  const log = { warn: (line: object) => void warnings.push(line) }
  const { averageCpu } = metrics
  const detect = createFullCpuDetector({ db, clock, log: log as never, averageCpu })
  const load = () => transaction(db, (trx) => finances.load(trx, workspaceId))
  const setMode = (mode: 'compute' | 'disk') =>
    transaction(db, (trx) =>
      upsertMeter(trx, {
        subject_id: boxId,
        workspace_id: workspaceId,
        box_id: boxId,
        user_id: userId ?? '',
        mode,
        tier: 'lite',
        megabytes: 0,
        since: 0,
        carry: 0,
      }),
    )
  await setMode('compute')
  /** Reports the usage of the last hours, and returns since when the workspace is flagged. */
  async function run(hours: number, percent: (hour: number) => number) {
    const now = Math.floor(clock.now() / 1000 / 300) * 300
    const samples = Array.from({ length: (hours * HOUR) / STEP }, (_, index) =>
      sample(now - hours * HOUR + index * STEP, { cpu_pct: percent(Math.floor((index * STEP) / HOUR)) }),
    )
    await metrics.report(samples)
    return check()
  }
  async function check() {
    await detect(await load())
    return (await load()).account.flagged_at
  }
  return { db, clock, workspaceId, warnings, setMode, run, check }
}

t.test('six hours of full CPU on free credit are flagged once', async (t) => {
  const { clock, warnings, run, check, setMode } = await createDetector(t)
  await setMode('disk')
  t.equal(await run(7, () => 95), null, 'the box does not run')
  await setMode('compute')
  t.equal(await check(), clock.now())
  t.equal(await check(), clock.now())
  t.equal(warnings.length, 1)
})

t.test('less usage, less time and a workspace that has paid are not flagged', async (t) => {
  const idle = await createDetector(t)
  t.equal(await idle.run(7, (hour) => (hour === 3 ? 20 : 100)), null, '87 % on average')
  const short = await createDetector(t)
  t.equal(await short.run(5, () => 100), null, 'for 5 hours')
  const paid = await createDetector(t)
  await paid.check()
  await paid.db.updateTable('billing_accounts').set({ paid_at: 1 }).execute()
  t.equal(await paid.run(7, () => 100), null, 'has paid')
})
