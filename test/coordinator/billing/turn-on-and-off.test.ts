// Billing that is turned on with boxes that exist, turned off, and turned on again: only the time with billing is charged.
import { pino } from 'pino'
import t, { type Test } from 'tap'
import { openBilling } from '../../../coordinator/billing/billing.ts'
import { chargeWorkspace } from '../../../coordinator/billing/charge.ts'
import { billingModule } from '../../../coordinator/billing/module.ts'
import { DEFAULT_PRICES } from '../../../coordinator/billing/prices.ts'
import { BALANCE_SCHEDULE } from '../../../coordinator/billing/service.ts'
import { updateBox } from '../../../coordinator/boxes/store/boxes.ts'
import { type Db, openDatabase } from '../../../coordinator/db/open.ts'
import { transaction } from '../../../coordinator/db/transaction.ts'
import { loadConfig } from '../../../coordinator/server/config.ts'
import { databaseFile } from '../../support/sqlite.ts'
import { createOwner, createTestBoxService, createTestClock } from '../../support/workspace.ts'

const HOUR_MS = 3_600_000
const START = Date.UTC(2030, 0, 1)
const CREDIT = 5_000_000

t.test('billing is turned on, off and on again', async (t: Test) => {
  const file = databaseFile(t)
  const clock = createTestClock(START)
  let db = await openDatabase({ kind: 'sqlite', file })
  t.teardown(() => db.destroy())

  let balance: () => Promise<number | undefined> = async () => undefined

  /** Starts another coordinator on the database. */
  async function restart(billing: 'off' | 'manual'): Promise<Db> {
    await db.destroy()
    db = await openDatabase({ kind: 'sqlite', file })
    const config = loadConfig({ BOXWOOD_BILLING: billing, BOXWOOD_FREE_CREDIT: '5.00' })
    const opened = openBilling({ config, db, clock, urls: { public: 'http://127.0.0.1:7070' } })
    t.equal(opened === null, billing === 'off')
    const module = billingModule({
      ...{ db, clock, config, billing: opened, log: pino({ level: 'silent' }) },
      mailer: { send: async () => 'sent' },
      lifecycle: { schedule: () => undefined },
      boxMetrics: { service: { averageCpu: async () => null } },
      payments: { collect: async () => undefined },
    })
    await module.prepare?.()
    balance = async () => (await opened?.finances.describe(workspaceId))?.balanceMicros
    return db
  }
  const owner = await createOwner(db, clock)
  const { workspaceId } = owner
  const create = async () => (await createTestBoxService(db, { clock }).create(owner, { tier: 'nano' })).id
  const setState = (id: string, observed_state: 'running' | 'suspended' | 'terminated') =>
    transaction(db, (trx) =>
      updateBox(trx, id, {
        observed_state,
        desired_state: observed_state,
        updated_at: clock.now(),
      }),
    )
  const countMeters = async () => (await db.selectFrom('billing_meters').selectAll().execute()).length

  await restart('off')
  const [running, suspended] = [await create(), await create()]
  await setState(running, 'running')
  await setState(suspended, 'suspended')
  t.equal(await countMeters(), 0, 'nothing is metered while billing is off')
  clock.advance(10 * HOUR_MS)

  await restart('manual')
  t.equal(await balance(), CREDIT, 'the time before is free')
  t.match(await db.selectFrom('schedules').selectAll().where('kind', '=', BALANCE_SCHEDULE).execute(), [
    { target_id: workspaceId },
  ])
  clock.advance(1.5 * HOUR_MS)
  const first = 1.5 * (10_000 + 1370)
  t.equal(await balance(), CREDIT - first)
  await restart('manual')
  t.equal(await balance(), CREDIT - first, 'a restart changes nothing')

  await restart('off')
  clock.advance(5 * HOUR_MS)
  await setState(running, 'suspended')
  await setState(suspended, 'terminated')
  const later = await create()
  await setState(later, 'running')
  clock.advance(5 * HOUR_MS)

  await restart('manual')
  t.equal(await balance(), CREDIT - first, 'the time without billing is free')
  clock.advance(2 * HOUR_MS)
  const second = 2 * (10_000 + 1370)
  t.equal(await balance(), CREDIT - first - second, 'the states of now are metered')
  await chargeWorkspace({ db, prices: DEFAULT_PRICES }, workspaceId, Math.floor(clock.now() / HOUR_MS) * 3600)
  t.equal(await balance(), CREDIT - first - second)
  t.equal(await countMeters(), 2, 'the meter of the deleted box has ended')
})
