// A random month of boxes and snapshots with billing, with failed transactions, kills and late charges, reproducible by its seeds.

import { chargeWorkspace } from '../../../coordinator/billing/charge.ts'
import { CHARGE_DELAY_MS } from '../../../coordinator/billing/evaluate.ts'
import { post, toEntry } from '../../../coordinator/billing/ledger.ts'
import { createMeterObserver } from '../../../coordinator/billing/meter.ts'
import { meterExisting } from '../../../coordinator/billing/meter-existing.ts'
import type { FinanceService } from '../../../coordinator/billing/service.ts'
import { lockAccount, sumEntries } from '../../../coordinator/billing/store/accounts.ts'
import type { Db } from '../../../coordinator/db/open.ts'
import { observeRows } from '../../../coordinator/db/row-changes.ts'
import { type Trx, transaction } from '../../../coordinator/db/transaction.ts'
import type { Actor } from '../../../coordinator/http/actor.ts'
import { createTestFinances } from '../finances.ts'
import { createSeededRandom } from '../random.ts'
import { createTestBoxService, createTestClock, type TestClock } from '../workspace.ts'
import { createRandomChange, type RandomChange } from './billing-changes.ts'
import { computeCost, readTruth, setTruthTime, type TruthPrices, type TruthRow } from './billing-truth.ts'
import { createFaults, type KillablePoint } from './faults.ts'

/** `connect` opens the database for one coordinator; null: its transactions cannot be killed. */
export type MonthDatabase = { db: Db; connect: ((point: KillablePoint) => Db) | null }

export type MonthOptions = {
  database: MonthDatabase
  owner: Actor
  users: readonly string[]
  prices: TruthPrices
  /** Of the changes, and of the charges. */
  seed: number
  chargeSeed: number
  boxes: number
  changes: number
  /** The mean number of changes from one charge to the next one. */
  changesPerCharge: number
}

export const MONTH_START = Date.UTC(2030, 0, 1)
const MONTH_MS = 31 * 24 * 3600 * 1000
const CREDIT = 100_000_000_000

type Coordinator = { db: Db; finances: FinanceService; point: KillablePoint; change: RandomChange }

/** Throws when a balance is not that of the truth. The test compares the rows that remain. */
export async function runMonth(
  options: MonthOptions,
): Promise<{ truth: TruthRow[]; until: number; kills: number }> {
  const { database, owner, users, prices, changes, changesPerCharge } = options
  const { workspaceId } = owner
  const random = createSeededRandom(options.seed)
  const chargeRandom = createSeededRandom(options.chargeSeed)
  const clock = createTestClock(MONTH_START)
  /** The statement at which the coordinator is killed. */
  let countdown = Number.POSITIVE_INFINITY
  const faults = createFaults(() => (--countdown === 0 ? 0 : 1), { fail: 0, hang: 0, kill: 0.5, budget: 1e9 })
  let coordinator = start()
  let credit = CREDIT
  let kills = 0

  function start(): Coordinator {
    const point = faults.createPoint()
    const db = database.connect?.(point) ?? database.db
    observeRows(db, createMeterObserver(clock))
    const finances = createTestFinances(db, clock, { prices, freeCreditMicros: CREDIT })
    const boxes = createTestBoxService(db, { clock })
    const change = createRandomChange({ random, clock, boxes, owner, users, limit: options.boxes })
    return { db, finances, point, change }
  }

  async function restart(): Promise<void> {
    const { change } = coordinator
    coordinator = start()
    coordinator.change.adopt(change)
    await meterExisting(coordinator.db, coordinator.finances, clock.now())
  }

  /** @param killAt the statement; 0: the coordinator is not killed */
  async function run(fn: () => Promise<unknown>, killAt: number): Promise<void> {
    const { point } = coordinator
    const killed = new Promise<void>((resolve) => point.onKill(resolve))
    countdown = killAt === 0 || database.connect === null ? Number.POSITIVE_INFINITY : killAt
    await Promise.race([fn(), killed])
    countdown = Number.POSITIVE_INFINITY
    if (!point.isKilled()) return
    kills += 1
    // Until the transaction is rolled back.
    await new Promise((resolve) => setImmediate(resolve))
    await restart()
  }

  const getHour = () => Math.floor((clock.now() - CHARGE_DELAY_MS) / 3_600_000) * 3600
  const charge = () => chargeWorkspace({ db: coordinator.db, prices }, workspaceId, getHour())

  async function change(): Promise<void> {
    const fails = random() < 0.08
    const killAt = random() < 0.1 ? 1 + Math.floor(random() * 60) : 0
    const write = coordinator.change.next()
    const attempt = () =>
      transaction(coordinator.db, async (trx) => {
        await write(trx)
        if (fails) throw new Error('simulated failure')
      }).catch((error: unknown) => {
        if (!(error instanceof Error && (error.message === 'simulated failure' || 'code' in error)))
          throw error
      })
    await run(attempt, killAt)
  }

  async function topUp(trx: Trx, amount: number, cause: string): Promise<void> {
    const account = await lockAccount(trx, workspaceId)
    if (account === undefined) throw new Error('there is no account')
    const entry = toEntry({
      workspace_id: workspaceId,
      cause,
      kind: 'credit',
      debit: 'manual_payments',
      credit: 'balance',
      amount_micros: amount,
      at: clock.now(),
    })
    await post(trx, account, [entry])
  }

  async function assertBalances(isCharged: boolean): Promise<void> {
    const truth = await readTruth(database.db)
    const { balanceMicros } = await coordinator.finances.describe(workspaceId)
    const expected = credit - computeCost(truth, prices, Math.floor(clock.now() / 1000))
    if (balanceMicros !== expected)
      throw new Error(`at ${clock.now()}, the balance is ${balanceMicros}, and not ${expected}`)
    const account = await transaction(database.db, (trx) => lockAccount(trx, workspaceId))
    const sum = await sumEntries(database.db, workspaceId)
    const ledger = credit - computeCost(truth, prices, getHour())
    if (account?.balance_micros !== sum || (isCharged && sum !== ledger))
      throw new Error(
        `at ${clock.now()}, the ledger has ${account?.balance_micros} and ${sum}, and not ${ledger}`,
      )
  }

  async function chargeAtRandom(changeOnce: () => Promise<void>): Promise<void> {
    const kind = chargeRandom()
    if (kind < 0.2) await run(charge, 1 + Math.floor(chargeRandom() * 400))
    else if (kind < 0.4) await Promise.all([charge(), charge()])
    else if (kind < 0.5) await charge()
    await changeOnce()
    await charge()
    await assertBalances(true)
  }

  await setTruthTime(database.db, clock.now())
  await meterExisting(coordinator.db, coordinator.finances, clock.now())
  for (let count = 0; count < changes; count++) {
    if (random() < 0.9) await advance(clock, database.db, random() * 2 * (MONTH_MS / changes))
    if (random() < 0.01) await run(() => Promise.resolve(coordinator.point.kill()), 0)
    if (count % 1000 === 500) {
      for (const amount of [1_000_000, 2_000_000])
        await transaction(coordinator.db, (trx) => topUp(trx, amount, `credit:${count}`))
      credit += 1_000_000
    }
    if (chargeRandom() < 1 / changesPerCharge) await chargeAtRandom(change)
    else await change()
    if (chargeRandom() < 0.01) await assertBalances(false)
  }
  await advance(clock, database.db, MONTH_START + MONTH_MS + CHARGE_DELAY_MS - clock.now())
  await charge()
  await assertBalances(true)
  return { truth: await readTruth(database.db), until: getHour(), kills }
}

async function advance(clock: TestClock, db: Db, ms: number): Promise<void> {
  clock.advance(Math.max(0, Math.floor(ms)))
  await setTruthTime(db, clock.now())
}
