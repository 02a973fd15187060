// Full CPU for hours on free credit is flagged once, by the stored metrics.

import t from 'tap'
import { createFullCpuDetector } from '../../../coordinator/billing/detect-full-cpu.ts'
import { upsertMeter } from '../../../coordinator/billing/store/meters.ts'
import { transaction } from '../../../coordinator/db/transaction.ts'
import { createTestFinances } from '../../support/finances.ts'
import { sqliteForTest } from '../../support/sqlite.ts'
import { sample, setUp } from '../history/metrics/support.ts'

/** The length of the buckets of an average, in seconds: one sample of each is enough. */
const STEP = 300
const HOUR = 3600

t.test('a workspace is flagged once for six hours of full CPU of a running box', async (t) => {
  const metrics = await setUp(await sqliteForTest(t))
  const { db, clock, owner, boxId, averageCpu } = metrics
  const { workspaceId, userId } = owner
  const now = Math.floor(clock.now() / 1000 / STEP) * STEP
  const percent = (hour: number) => (hour === 0 ? 20 : 95)
  await metrics.report(
    Array.from({ length: (7 * HOUR) / STEP }, (_, index) =>
      sample(now - 7 * HOUR + index * STEP, { cpu_pct: percent(Math.floor((index * STEP) / HOUR)) }),
    ),
  )
  const average = (from: number, to: number) =>
    averageCpu(boxId, { from: (now - from * HOUR) * 1000, to: (now - to * HOUR) * 1000 })
  t.equal(await average(6, 0), 95)
  t.equal(await average(7, 1), 82.5)
  t.equal(await average(8, 2), null, 'the box did not run for the whole time')

  const finances = createTestFinances(db, clock)
  const warnings: object[] = []
  const log = { warn: (line: object) => void warnings.push(line) } as never
  const load = () => transaction(db, (trx) => finances.load(trx, workspaceId))
  async function detect(read = averageCpu): Promise<number | null> {
    await createFullCpuDetector({ db, clock, log, averageCpu: read })(await load())
    return (await load()).account.flagged_at
  }
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
        since: now,
        carry: 0,
      }),
    )
  await setMode('disk')
  t.equal(await detect(), null, 'the box does not run')
  await setMode('compute')
  t.equal(await detect(async () => 89.9), null)
  const pay = () => db.updateTable('billing_accounts').set({ paid_at: 1 }).execute()
  const payMeanwhile = async () => {
    await pay()
    return 95
  }
  t.equal(await detect(payMeanwhile), null, 'the workspace pays while its metrics are read')
  t.equal(await detect(), null, 'the workspace has paid')
  await db.updateTable('billing_accounts').set({ paid_at: null }).execute()
  t.equal(await detect(), clock.now())
  clock.advance(1000)
  t.equal(await detect(), clock.now() - 1000)
  t.match(warnings, [{ workspaceId, boxId, percent: 95 }])
  t.equal(warnings.length, 1)
})
