// What payments change in an account. The callers have locked the account.
import { recordAuditEvent } from '../../audit/service.ts'
import type { Trx } from '../../db/transaction.ts'
import { evaluateSoon, postCredit } from '../credit.ts'
import { post, toEntry } from '../ledger.ts'
import { collectionOf } from '../overdraft.ts'
import { scheduleOwnerMails } from '../owner-mails.ts'
import type { Finances } from '../service.ts'
import { listRefunds, updateAccount } from '../store/accounts.ts'
import type { BillingAccountRow } from '../store/tables.ts'
import type { PaymentEvent } from './provider.ts'

const HOUR_MS = 3_600_000
const GRACE_MS = 72 * HOUR_MS
/** Stripe knows the key of a repeated request for at least 24 hours. */
const ATTEMPT_MS = 23 * HOUR_MS

type Collection = {
  customerId: string
  paymentMethodId: string
  attempt: string
  amountMicros: number
  isExpired: boolean
}

/**
 * Starts an attempt to charge the saved card, or returns the one without an outcome.
 * @param options.topUpMicros the least that the card pays at once
 * @returns null when there is nothing to charge. After a failed payment, the owners pay themselves first.
 */
export async function beginCollection(
  trx: Trx,
  finances: Finances,
  { topUpMicros, now }: { topUpMicros: number; now: number },
): Promise<Collection | null> {
  const { account } = finances
  const { customer_id: customerId, payment_method_id: paymentMethodId, collecting_since: since } = account
  if (customerId === null || paymentMethodId === null) return null
  const card = { customerId, paymentMethodId }
  if (since !== null) {
    // The provider refuses to repeat an attempt with another amount.
    const amountMicros = account.collection_micros ?? topUpMicros
    return { ...card, attempt: String(since), amountMicros, isExpired: now - since > ATTEMPT_MS }
  }
  const amountMicros = collectionOf(finances, topUpMicros)
  if (account.payment_failed_at !== null || account.hold !== null) return null
  if (finances.balanceMicros >= amountMicros) return null
  await updateAccount(trx, account.workspace_id, { collecting_since: now, collection_micros: amountMicros })
  return { ...card, attempt: String(now), amountMicros, isExpired: false }
}

const isCurrent = ({ collecting_since: since }: BillingAccountRow, attempt: string | null): boolean =>
  since !== null && attempt === String(since)

/**
 * A payment ends the failure of an earlier one when it pays what the workspace owes: else a small payment would let the boxes of a
 * card that does not pay run on. A card that is saved with the payment is another one, and is trusted with this payment alone.
 */
export async function applyPayment(
  trx: Trx,
  { account, balanceMicros }: Pick<Finances, 'account' | 'balanceMicros'>,
  { paymentId, amountMicros, attempt, savedCard }: Extract<PaymentEvent, { type: 'paid' }>,
  now: number,
): Promise<void> {
  const { workspace_id: workspaceId } = account
  const isCollection = isCurrent(account, attempt)
  if (isCollection) await updateAccount(trx, workspaceId, { collecting_since: null })
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
  const isOtherCard = savedCard !== null && savedCard.paymentMethodId !== account.payment_method_id
  const isOfSavedCard = savedCard !== null || isCollection
  await updateAccount(trx, workspaceId, {
    ...((isOtherCard || balanceMicros + amountMicros >= 0) && NO_FAILURE),
    ...(isOfSavedCard && {
      card_paid_micros: amountMicros + (isOtherCard ? 0 : account.card_paid_micros),
    }),
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
  // A refund does not name the card.
  const cardPaidMicros = Math.max(0, account.card_paid_micros - amountMicros)
  await updateAccount(trx, workspaceId, { card_paid_micros: cardPaidMicros })
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
