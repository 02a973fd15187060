// Charges the usage of a workspace each hour, warns its owners when the balance is low, and suspends its boxes when it is empty.
import type { Logger } from 'pino'
import type { Clock } from '../../shared/clock.ts'
import { formatDollars, formatPrice } from '../../shared/format-dollars.ts'
import { recordAuditEvent } from '../audit/service.ts'
import { suspendBySystem } from '../boxes/lifecycle/suspend-by-system.ts'
import { lockBox } from '../db/lock-box.ts'
import type { Db } from '../db/open.ts'
import { transaction } from '../db/transaction.ts'
import { findWorkspace } from '../identity/lookups.ts'
import { recordDueTime } from '../jobs/due-times.ts'
import { findSchedule, lockSchedule, moveSchedule } from '../jobs/schedules.ts'
import { chargeWorkspace } from './charge.ts'
import { CHARGE_DELAY_MS, evaluateBalance } from './evaluate.ts'
import { isCardTrusted } from './overdraft.ts'
import { type OwnerMail, scheduleOwnerMails } from './owner-mails.ts'
import { type PriceTable, pricesAt, rateOf } from './prices.ts'
import { BALANCE_SCHEDULE, type FinanceService, type Finances } from './service.ts'
import { updateAccount } from './store/accounts.ts'
import { floorHour } from './usage.ts'

export type BalanceWatchOptions = {
  db: Db
  clock: Clock
  log: Pick<Logger, 'info'>
  prices: PriceTable
  finances: Pick<FinanceService, 'load'>
  warnBelowHours: number
  /** Flags a workspace on free credit. */
  detectFullCpu(finances: Finances): Promise<void>
  /** Charges the saved card of the workspace when the balance is low. */
  collect(workspaceId: string, signal: AbortSignal): Promise<void>
  /** Schedules the box for the reconciler. */
  scheduleBox(boxId: string): void
}

/** The handler of the schedule of a workspace. Returns when the balance is evaluated next. */
export function createBalanceWatch(options: BalanceWatchOptions) {
  const { db, clock, log, prices, finances, warnBelowHours } = options
  const { detectFullCpu, collect, scheduleBox } = options

  async function run(workspaceId: string, signal: AbortSignal): Promise<number | undefined> {
    const key = { kind: BALANCE_SCHEDULE, target_id: workspaceId }
    const { due_at: dueAt } = (await findSchedule(db, key)) ?? {}
    const until = floorHour(Math.floor((clock.now() - CHARGE_DELAY_MS) / 1000))
    await chargeWorkspace({ db, prices }, workspaceId, until, signal)
    await collect(workspaceId, signal)
    const { loaded, state, boxIds, reason } = await evaluate(workspaceId)
    for (const boxId of boxIds) {
      signal.throwIfAborted()
      await suspend(boxId, reason)
    }
    await detectFullCpu(loaded)
    return transaction(db, async (trx) => {
      const schedule = await lockSchedule(trx, key)
      // A change of the account after the evaluation has made the schedule due again.
      if (schedule === undefined || schedule.due_at !== dueAt) return schedule?.due_at
      await moveSchedule(trx, key, state.nextAt)
      return state.nextAt
    })
  }

  /** Stores a change of the state, and the mails about it. */
  function evaluate(workspaceId: string) {
    return transaction(db, async (trx, onCommit) => {
      const loaded = await finances.load(trx, workspaceId)
      const now = clock.now()
      const workspace = await findWorkspace(trx, workspaceId)
      // The card of a closing workspace is not charged (payments/service.ts).
      const hasCard = workspace?.closing_at === null && isCardTrusted(loaded.account, now)
      const state = evaluateBalance(loaded, { now, warnBelowHours, card: hasCard ? loaded : null })
      const { warned_at: warnedAt, emptied_at: emptiedAt } = loaded.account
      // A workspace without boxes and snapshots, such as a new one without free credit, has nothing that can be suspended.
      const isUsed = loaded.meters.some(({ mode }) => mode !== 'ended')
      const changes = {
        warned_at: isUsed && state.isLow ? (warnedAt ?? now) : null,
        emptied_at: isUsed && state.isEmpty ? (emptiedAt ?? now) : null,
      }
      const becameEmpty = changes.emptied_at !== null && emptiedAt === null
      const becameLow = changes.warned_at !== null && warnedAt === null
      if (changes.warned_at !== warnedAt || changes.emptied_at !== emptiedAt)
        await updateAccount(trx, workspaceId, changes)
      if (becameEmpty || becameLow) {
        const kind = becameEmpty ? 'billing.empty' : 'billing.low'
        const { balanceMicros, burnMicrosPerHour } = loaded
        recordAuditEvent(trx, {
          kind,
          actor: { system: true, workspaceId },
          boxId: null,
          detail: { balanceMicros, burnMicrosPerHour },
          at: now,
        })
        await scheduleOwnerMails(trx, 'mail_balance', { workspaceId, now })
        recordDueTime(trx, now)
        onCommit(() =>
          log.info({ workspaceId, kind, balanceMicros, burnMicrosPerHour }, 'the balance is low or empty'),
        )
      }
      const isHeld = loaded.account.hold !== null
      const mustSuspend = state.isEmpty || isHeld
      const boxIds = mustSuspend ? orderBoxes(loaded, pricesAt(prices, Math.floor(now / 1000))) : []
      const reason = isHeld ? 'an operator has paused the workspace' : 'the balance of the workspace is empty'
      return { loaded, state, boxIds, reason }
    })
  }

  const suspend = (boxId: string, reason: string): Promise<void> =>
    transaction(db, async (trx, onCommit) => {
      const box = await lockBox(trx, boxId)
      if (box === undefined || box.desired_state !== 'running') return
      await suspendBySystem(trx, box, { reason, now: clock.now() })
      onCommit(() => scheduleBox(boxId))
    })

  return run
}

/** Creates the mail about a balance that is low or empty. @param billingUrl null: an operator grants credit */
export const createBalanceMail =
  (billingUrl: string | null) =>
  ({ account, balanceMicros, burnMicrosPerHour }: Finances): OwnerMail | null => {
    const balance = formatDollars(balanceMicros)
    const burn = formatPrice(burnMicrosPerHour)
    const action =
      billingUrl === null ? 'Ask the operator of this Boxwood for credit.' : `Add credit at ${billingUrl}`
    if (account.emptied_at !== null)
      return {
        subject: 'Your boxes are suspended: the balance is empty',
        text: `The balance of your workspace is ${balance}. Its boxes are suspended and keep their files. ${action}\n`,
      }
    if (account.warned_at === null) return null
    return {
      subject: 'The balance of your workspace is low',
      text: `The balance of your workspace is ${balance}, and its boxes cost ${burn} an hour. When it is empty, the boxes are suspended. ${action}\n`,
    }
  }

/** The boxes that run or start, in the order in which they are suspended: the most expensive first. */
function orderBoxes({ meters }: Finances, prices: ReturnType<typeof pricesAt>): string[] {
  return meters
    .filter(({ mode }) => mode === 'compute' || mode === 'launching' || mode === 'waking')
    .map((meter) => ({ id: meter.subject_id, rate: rateOf({ ...meter, mode: 'compute' }, prices) }))
    .sort((a, b) => b.rate - a.rate || (a.id < b.id ? -1 : 1))
    .map(({ id }) => id)
}
