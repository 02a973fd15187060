// What payments change in an account. The callers have locked the account.
import { recordAuditEvent } from '../../audit/service.ts'
import type { Trx } from '../../db/transaction.ts'
import { evaluateSoon, postCredit } from '../credit.ts'
import { post, toEntry } from '../ledger.ts'
import { scheduleOwnerMails } from '../owner-mails.ts'
import type { Finances } from '../service.ts'
import { listRefunds, updateAccount } from '../store/accounts.ts'
import type { BillingAccountRow } from '../store/tables.ts'
import type { PaymentEvent } from './provider.ts'

const HOUR_MS = 3_600_000
const GRACE_MS = 72 * HOUR_MS
/** Stripe knows the key of a repeated request for at least 24 hours. */
const ATTEMPT_MS = 23 * HOUR_MS

type Collection = { customerId: string; paymentMethodId: string; attempt: string; isExpired: boolean }

/**
 * Starts an attempt to charge the saved card, or returns the one without an outcome.
 * @returns null when there is nothing to charge. After a failed payment, the owners pay themselves first.
 */
export async function beginCollection(
  trx: Trx,
  { account, balanceMicros }: Finances,
  { belowMicros, now }: { belowMicros: number; now: number },
): Promise<Collection | null> {
  const { customer_id: customerId, payment_method_id: paymentMethodId, collecting_since: since } = account
  if (customerId === null || paymentMethodId === null) return null
  if (since !== null) {
    const isExpired = now - since > ATTEMPT_MS
    return { customerId, paymentMethodId, attempt: String(since), isExpired }
  }
  if (account.payment_failed_at !== null || account.hold !== null || balanceMicros >= belowMicros) return null
  await updateAccount(trx, account.workspace_id, { collecting_since: now })
  return { customerId, paymentMethodId, attempt: String(now), isExpired: false }
}

const isCurrent = ({ collecting_since: since }: BillingAccountRow, attempt: string | null): boolean =>
  since !== null && attempt === String(since)

export async function applyPayment(
  trx: Trx,
  account: BillingAccountRow,
  { paymentId, amountMicros, attempt, savedCard }: Extract<PaymentEvent, { type: 'paid' }>,
  now: number,
): Promise<void> {
  const { workspace_id: workspaceId } = account
  if (isCurrent(account, attempt)) await updateAccount(trx, workspaceId, { collecting_since: null })
  const entry = toEntry({
    workspace_id: workspaceId,
    cause: `topup:${paymentId}`,
    kind: 'top_up',
    debit: 'card_payments',
    credit: 'balance',
    amount_micros: amountMicros,
    at: now,
  })
  if (!(await postCredit(trx, account, { entry, isPayment: true, now }))) return
  await updateAccount(trx, workspaceId, {
    ...NO_FAILURE,
    ...(savedCard !== null && {
      customer_id: savedCard.customerId,
      payment_method_id: savedCard.paymentMethodId,
      // The provider refuses to repeat an attempt with another card. If the earlier attempt has succeeded, an event reports it.
      collecting_since: null,
    }),
  })
  record(trx, 'billing.payment', workspaceId, { paymentId, amountMicros, automatic: attempt !== null }, now)
}

/** Events of the same charge may arrive in any order: each has the sum of the refunds until then. */
export async function applyRefund(
  trx: Trx,
  account: BillingAccountRow,
  { chargeId, refundedMicros }: Extract<PaymentEvent, { type: 'refunded' }>,
  now: number,
): Promise<void> {
  const { workspace_id: workspaceId } = account
  const earlier = (await listRefunds(trx, workspaceId)).filter(({ cause }) =>
    cause.startsWith(`refund:${chargeId}:`),
  )
  const amountMicros = refundedMicros - earlier.reduce((sum, { amount_micros: micros }) => sum + micros, 0)
  if (amountMicros <= 0) return
  const entry = toEntry({
    workspace_id: workspaceId,
    cause: `refund:${chargeId}:${refundedMicros}`,
    kind: 'refund',
    debit: 'balance',
    credit: 'card_payments',
    amount_micros: amountMicros,
    at: now,
  })
  await post(trx, account, [entry])
  await evaluateSoon(trx, workspaceId, now)
  record(trx, 'billing.refund', workspaceId, { chargeId, amountMicros }, now)
}

/**
 * The owners get a mail.
 * @param failure.message is for the owners
 * @returns false, and changes nothing, for an attempt that has an outcome
 */
export async function failCollection(
  trx: Trx,
  account: BillingAccountRow,
  { attempt, message }: { attempt: string; message: string },
  now: number,
): Promise<boolean> {
  if (!isCurrent(account, attempt)) return false
  const { workspace_id: workspaceId } = account
  await updateAccount(trx, workspaceId, {
    collecting_since: null,
    payment_failed_at: now,
    payment_failure: message,
    payment_grace_until: now + GRACE_MS,
  })
  await scheduleOwnerMails(trx, 'mail_payment_failed', { workspaceId, now })
  record(trx, 'billing.payment_failed', workspaceId, {}, now)
  return true
}

/** The fields of an account whose last payment has not failed. */
export const NO_FAILURE = {
  payment_failed_at: null,
  payment_failure: null,
  payment_grace_until: null,
} as const

function record(
  trx: Trx,
  kind: 'billing.payment' | 'billing.payment_failed' | 'billing.refund',
  workspaceId: string,
  detail: Record<string, string | number | boolean>,
  at: number,
): void {
  recordAuditEvent(trx, { kind, actor: { system: true, workspaceId }, boxId: null, detail, at })
}
