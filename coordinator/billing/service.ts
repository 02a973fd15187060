// Reads the finances of a workspace: its balance at this moment, what its boxes cost, and what they have used.
import type { Account } from '../../shared/api/account.ts'
import { type Clock, toTimestampOrNull } from '../../shared/clock.ts'
import type { Tier } from '../../shared/tiers.ts'
import { type BillingFacts, type Funds, type LoadBilling, needsFunds } from '../admission/billing-facts.ts'
import type { LoadPlanLimits } from '../admission/plan-limits.ts'
import { countLiveBoxesOfWorkspace } from '../boxes/lookups.ts'
import type { Db } from '../db/open.ts'
import { type Trx, transaction } from '../db/transaction.ts'
import type { Actor } from '../http/actor.ts'
import { insertMissingSchedule } from '../jobs/schedules.ts'
import { burnOf, listAccrued, sumMicros, type Usage } from './accrued.ts'
import { grantFreeCredit } from './free-credit.ts'
import { openAccount } from './ledger.ts'
import { hasWorkingCard, overdraftOf } from './overdraft.ts'
import { PLANS, type Plan } from './plans.ts'
import { diskMicros, type PriceTable, pricesAt } from './prices.ts'
import { findAccount, lockAccount } from './store/accounts.ts'
import { listSubjects } from './store/meters.ts'
import type { BillingAccountRow, BillingMeterRow } from './store/tables.ts'
import { listTotals } from './store/totals.ts'
import { toDay, toMonth } from './usage.ts'

export type FinancesOptions = {
  db: Db
  clock: Clock
  prices: PriceTable
  freeCreditMicros: number
  warnBelowHours: number
  /** The most that a workspace with a saved card may owe. */
  maxOverdraftMicros: number
  /** Where owners pay; null: an operator grants credit. */
  billingUrl: string | null
}

/** Micro-dollars of boxes by box id or user id. */
export type Spend = ReadonlyMap<string, number>

export type WorkspaceSpend = { todayByBox: Spend; cycleByBox: Spend; cycleByUser: Spend }

/** The state of an account at an instant. */
export type Finances = {
  account: BillingAccountRow
  plan: Plan
  /** The balance with all usage until the instant. Negative: the workspace owes. */
  balanceMicros: number
  /** What the workspace may owe while its boxes run (overdraft.ts). */
  overdraftMicros: number
  burnMicrosPerHour: number
  reservedMicrosPerHour: number
  meters: readonly BillingMeterRow[]
  /** The usage that is not in the ledger. */
  accrued: readonly Usage[]
}

export type FinanceService = {
  /** The `billing` of GET /me. */
  describe(workspaceId: string): Promise<NonNullable<Account['billing']>>
  present(finances: Finances): NonNullable<Account['billing']>
  /** Locks the account until the transaction ends: no charge runs meanwhile. Opens an account when there is none. */
  load(trx: Trx, workspaceId: string): Promise<Finances>
  loadFacts: LoadBilling
  loadPlanLimits: LoadPlanLimits
  /** What boxes and members have spent today and in this cycle. */
  loadSpend(workspaceId: string): Promise<WorkspaceSpend>
}

/** The plan of a workspace: `free` until its first payment. */
export const planOf = ({ paid_at: paidAt }: Pick<BillingAccountRow, 'paid_at'>): Plan =>
  paidAt === null ? PLANS.free : PLANS.paid

const MS = 1000

/** The kind of the schedule that charges a workspace (watch-balance.ts). */
export const BALANCE_SCHEDULE = 'bill_workspace'

export function createFinanceService(options: FinancesOptions): FinanceService {
  const { db, clock, prices, freeCreditMicros, warnBelowHours, maxOverdraftMicros, billingUrl } = options

  async function open(trx: Trx, workspaceId: string): Promise<BillingAccountRow> {
    const now = clock.now()
    const found = await lockAccount(trx, workspaceId)
    if (found !== undefined) return grantFreeCredit(trx, found, { freeCreditMicros, now })
    await openAccount(trx, workspaceId, now)
    await insertMissingSchedule(trx, { kind: BALANCE_SCHEDULE, target_id: workspaceId, due_at: now })
    const opened = await lockAccount(trx, workspaceId)
    if (opened === undefined) throw new Error(`The workspace ${workspaceId} has no billing account.`)
    return grantFreeCredit(trx, opened, { freeCreditMicros, now })
  }

  const load: FinanceService['load'] = async (trx, workspaceId) => {
    const account = await open(trx, workspaceId)
    const subjects = await listSubjects(trx, workspaceId)
    const meters = subjects.map(({ meter }) => meter)
    const now = clock.now()
    const at = Math.floor(now / MS)
    const accrued = listAccrued(subjects, at, prices)
    const { burn, reserved } = burnOf(meters, at, prices)
    return {
      account,
      plan: planOf(account),
      balanceMicros: account.balance_micros - sumMicros(accrued),
      overdraftMicros: overdraftOf(account, { maxMicros: maxOverdraftMicros, now }),
      burnMicrosPerHour: burn,
      reservedMicrosPerHour: reserved,
      meters,
      accrued,
    }
  }

  const loadFacts: LoadBilling = async (trx, actor, action): Promise<BillingFacts> => {
    if (!needsFunds(action)) return toFacts(await findAccount(trx, actor.workspaceId), null)
    const finances = await load(trx, actor.workspaceId)
    return toFacts(finances.account, await loadFunds(trx, actor, finances))
  }

  /** @param account undefined: the workspace gets one, with its free credit, when it is used */
  const toFacts = (account: BillingAccountRow | undefined, funds: Funds | null): BillingFacts => ({
    isFreeCredit: account === undefined || account.paid_at === null,
    plan: account === undefined ? PLANS.free : planOf(account),
    hold: account?.hold ?? null,
    billingUrl,
    funds,
  })

  async function loadFunds(trx: Trx, { workspaceId, userId }: Actor, finances: Finances): Promise<Funds> {
    const { account, accrued, balanceMicros, burnMicrosPerHour, reservedMicrosPerHour } = finances
    const at = Math.floor(clock.now() / MS)
    const current = pricesAt(prices, at)
    const month = toMonth(at)
    return {
      balanceMicros,
      burnMicrosPerHour,
      reservedMicrosPerHour,
      overdraftMicros: hasWorkingCard(account) ? finances.overdraftMicros : 0,
      liveBoxes: await countLiveBoxesOfWorkspace(trx, workspaceId),
      spentThisCycleMicros:
        userId === null
          ? null
          : (await sumUserTotals(trx, workspaceId, userId, month)) +
            sumMicros(accrued.filter((usage) => usage.userId === userId && toMonth(usage.hour) === month)),
      rates: {
        compute: (tier: Tier) => current.compute[tier],
        disk: (tier: Tier) => diskMicros(tier, current),
      },
    }
  }

  /** A workspace without an account gets one with its first request that is admitted. */
  const loadPlanLimits: LoadPlanLimits = async (db, workspaceId) =>
    planOf((await findAccount(db, workspaceId)) ?? { paid_at: null })

  const present: FinanceService['present'] = (finances) => {
    const { account, balanceMicros, overdraftMicros, burnMicrosPerHour } = finances
    const hours = burnMicrosPerHour === 0 ? null : Math.max(0, balanceMicros) / burnMicrosPerHour
    return {
      balanceMicros,
      burnMicrosPerHour,
      runwayHours: hours === null ? null : Math.floor(hours * 100) / 100,
      warnBelowHours,
      planAmountUsd: 0,
      overage: account.payment_method_id !== null,
      overdraftMicros,
      collecting: account.collecting_since !== null,
      paymentFailed: account.payment_failed_at !== null,
      paymentGraceUntil: toTimestampOrNull(account.payment_grace_until),
      trial: account.paid_at === null,
      billingUrl,
      hold: account.hold,
    }
  }

  const describe: FinanceService['describe'] = async (workspaceId) =>
    present(await transaction(db, (trx) => load(trx, workspaceId)))

  const loadSpend: FinanceService['loadSpend'] = async (workspaceId) => {
    const at = Math.floor(clock.now() / MS)
    const [day, month] = [toDay(at), toMonth(at)]
    const { accrued, today, cycle } = await transaction(db, async (trx) => ({
      accrued: (await load(trx, workspaceId)).accrued,
      today: await listTotals(trx, { workspaceId, period: day }),
      cycle: await listTotals(trx, { workspaceId, period: month }),
    }))
    const spend = { todayByBox: new Map(), cycleByBox: new Map(), cycleByUser: new Map() }
    for (const row of today) add(spend.todayByBox, row.box_id, row.amount_micros)
    for (const row of cycle) {
      add(spend.cycleByBox, row.box_id, row.amount_micros)
      add(spend.cycleByUser, row.user_id, row.amount_micros)
    }
    for (const { boxId, userId, hour, micros } of accrued) {
      if (toDay(hour) === day) add(spend.todayByBox, boxId, micros)
      if (toMonth(hour) !== month) continue
      add(spend.cycleByBox, boxId, micros)
      add(spend.cycleByUser, userId, micros)
    }
    return spend
  }

  return { describe, present, load, loadFacts, loadPlanLimits, loadSpend }
}

async function sumUserTotals(trx: Trx, workspaceId: string, userId: string, period: string) {
  const rows = await listTotals(trx, { workspaceId, period, userId })
  return rows.reduce((sum, { amount_micros: micros }) => sum + micros, 0)
}

function add(totals: Map<string, number>, key: string, micros: number): void {
  totals.set(key, (totals.get(key) ?? 0) + micros)
}
