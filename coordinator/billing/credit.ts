// Adds credit to an account: that of operators, and payments by card.
import { recordAuditEvent } from '../audit/service.ts'
import type { Trx } from '../db/transaction.ts'
import { setSchedule } from '../jobs/schedules.ts'
import { post } from './ledger.ts'
import { BALANCE_SCHEDULE } from './service.ts'
import { updateAccount } from './store/accounts.ts'
import type { BillingAccountRow, BillingEntryRow } from './store/tables.ts'

/** The balance is evaluated after the commit, when the caller calls recordDueTime(). */
export const evaluateSoon = (trx: Trx, workspaceId: string, now: number): Promise<unknown> =>
  setSchedule(trx, { kind: BALANCE_SCHEDULE, target_id: workspaceId }, now)

/**
 * Posts the entry unless its cause is known. A payment ends the limits of free credit, and what is only about free credit: the
 * flag, and a hold for CPU. The caller has locked the account.
 * @returns false when the entry is a repetition
 */
export async function postCredit(
  trx: Trx,
  account: BillingAccountRow,
  { entry, isPayment, now }: { entry: BillingEntryRow; isPayment: boolean; now: number },
): Promise<boolean> {
  const { workspace_id: workspaceId } = account
  const { inserted } = await post(trx, account, [entry])
  if (inserted.length === 0) return false
  if (isPayment) {
    const isReleased = account.hold === 'cpu'
    await updateAccount(trx, workspaceId, {
      paid_at: account.paid_at ?? now,
      flagged_at: null,
      ...(isReleased && { hold: null }),
    })
    if (isReleased)
      recordAuditEvent(trx, {
        kind: 'billing.release',
        actor: { system: true, workspaceId },
        boxId: null,
        detail: { reason: 'cpu' },
        at: now,
      })
  }
  await evaluateSoon(trx, workspaceId, now)
  return true
}
