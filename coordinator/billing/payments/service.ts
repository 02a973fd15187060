// Payments by card: the checkout of owners, payments from a saved card, and what the provider reports.
import type { Logger } from 'pino'
import type { CheckoutRequest } from '../../../shared/api/payments.ts'
import { type Clock, toTimestamp } from '../../../shared/clock.ts'
import { ApiError } from '../../../shared/errors.ts'
import { formatDollars } from '../../../shared/format-dollars.ts'
import { recordAuditEvent } from '../../audit/service.ts'
import { unlessAborted } from '../../base/unless-aborted.ts'
import type { Db } from '../../db/open.ts'
import { afterCommit, type Trx, transaction } from '../../db/transaction.ts'
import type { Actor } from '../../http/actor.ts'
import { findWorkspace, listOwners } from '../../identity/lookups.ts'
import { assertOpen } from '../../identity/workspaces/service.ts'
import { recordDueTime } from '../../jobs/due-times.ts'
import { evaluateSoon } from '../credit.ts'
import type { OwnerMail } from '../owner-mails.ts'
import type { FinanceService, Finances } from '../service.ts'
import { updateAccount } from '../store/accounts.ts'
import { applyPayment, applyRefund, beginCollection, failCollection, NO_FAILURE } from './account-changes.ts'
import { type PaymentEvent, type PaymentProvider, SignatureError } from './provider.ts'

export type PaymentServiceOptions = {
  db: Db
  clock: Clock
  log: Pick<Logger, 'info' | 'warn'>
  finances: Pick<FinanceService, 'load'>
  provider: PaymentProvider
  /** The page of the dashboard to which an owner returns after a payment. */
  billingUrl: string
  autoTopUpMicros: number
}

export type PaymentService = {
  /** Returns the URL at which the owner pays. Throws bad_request, workspace_closing, or control_plane_unavailable. */
  checkout(actor: Actor, request: CheckoutRequest): Promise<string>
  /** Idempotent. Throws bad_request. */
  removeCard(actor: Actor): Promise<void>
  /** Applies an event of the provider. Idempotent, in any order. Throws bad_request for a wrong signature. */
  receive(body: Buffer, signature: string): Promise<void>
  /** Charges the saved card when the balance is low. An attempt without an outcome is repeated, also after a restart. */
  collect(workspaceId: string, signal: AbortSignal): Promise<void>
}

const MICROS_PER_CENT = 10_000

export function createPaymentService(options: PaymentServiceOptions): PaymentService {
  const { db, clock, log, finances, provider, billingUrl, autoTopUpMicros } = options

  /** Locks the account. @returns false when the workspace does not exist */
  function change(
    workspaceId: string,
    apply: (trx: Trx, finances: Finances, now: number) => Promise<unknown>,
  ): Promise<boolean> {
    return transaction(db, async (trx) => {
      if ((await findWorkspace(trx, workspaceId)) === undefined) return false
      const now = clock.now()
      await apply(trx, await finances.load(trx, workspaceId), now)
      recordDueTime(trx, now)
      return true
    })
  }

  const checkout: PaymentService['checkout'] = async (actor, { amountUsd, saveCard = false }) => {
    const { workspaceId } = actor
    await assertOpen(db, workspaceId)
    try {
      return await provider.createCheckout({
        workspaceId,
        customerId: await requireCustomer(workspaceId),
        amountCents: Math.round(amountUsd * 100),
        saveCard,
        returnUrl: billingUrl,
      })
    } catch (err) {
      log.warn({ err, workspaceId }, 'failed to create a checkout')
      throw new ApiError('control_plane_unavailable', 'The payment provider is not available. Try again.')
    }
  }

  async function requireCustomer(workspaceId: string): Promise<string> {
    const { account } = await transaction(db, (trx) => finances.load(trx, workspaceId))
    if (account.customer_id !== null) return account.customer_id
    const workspace = await findWorkspace(db, workspaceId)
    const [owner] = await listOwners(db, workspaceId)
    const email = owner?.email ?? null
    const id = await provider.createCustomer({ workspaceId, email, name: workspace?.name ?? workspaceId })
    await transaction(db, (trx) => updateAccount(trx, workspaceId, { customer_id: id }))
    return id
  }

  const removeCard: PaymentService['removeCard'] = async (actor) => {
    const { workspaceId } = actor
    let removed: string | null = null
    await change(workspaceId, async (trx, { account }, now) => {
      removed = account.payment_method_id
      if (removed === null) return
      await updateAccount(trx, workspaceId, {
        payment_method_id: null,
        card_paid_micros: 0,
        collecting_since: null,
        ...NO_FAILURE,
      })
      recordAuditEvent(trx, { kind: 'billing.card_remove', actor, boxId: null, detail: {}, at: now })
      await evaluateSoon(trx, workspaceId, now)
    })
    if (removed === null) return
    await provider.removeCard(removed).catch((err: unknown) => {
      log.warn({ err, workspaceId }, 'failed to remove a card at the payment provider')
    })
  }

  const receive: PaymentService['receive'] = async (body, signature) => {
    let event: PaymentEvent | null
    try {
      event = await provider.readEvent(body, signature)
    } catch (error) {
      if (error instanceof SignatureError) throw new ApiError('bad_request', error.message)
      throw error
    }
    if (event === null) log.info('ignored an event of the payment provider')
    else await applyEvent(event)
  }

  async function applyEvent(event: PaymentEvent): Promise<void> {
    const { workspaceId } = event
    const isKnown = await change(workspaceId, async (trx, finances, now) => {
      if (event.type === 'paid') return applyPayment(trx, finances, event, now)
      const { account } = finances
      if (event.type === 'refunded') return applyRefund(trx, account, event, now)
      if (await failCollection(trx, account, event, now))
        afterCommit(trx, () => log.warn({ workspaceId }, 'a payment from the saved card has failed'))
    })
    // The workspace may have been deleted while its owner was paying: the log has what the operator refunds.
    if (!isKnown) log.warn({ event }, 'a payment event is about an unknown workspace')
  }

  const fail = (workspaceId: string, attempt: string, message: string): Promise<void> =>
    applyEvent({ type: 'failed', workspaceId, attempt, message })

  const collect: PaymentService['collect'] = async (workspaceId, signal) => {
    const now = clock.now()
    const begun = await transaction(db, async (trx) => {
      const workspace = await findWorkspace(trx, workspaceId)
      if (workspace === undefined || workspace.closing_at !== null) return null
      const loaded = await finances.load(trx, workspaceId)
      return beginCollection(trx, loaded, { topUpMicros: autoTopUpMicros, now })
    })
    if (begun === null) return
    const { attempt, isExpired, amountMicros, ...card } = begun
    if (isExpired) return fail(workspaceId, attempt, 'The payment provider has reported no outcome.')
    try {
      const amountCents = amountMicros / MICROS_PER_CENT
      const call = provider.collect({ workspaceId, ...card, amountCents, attempt })
      const result = await unlessAborted(call, signal)
      if (result.status === 'failed') await fail(workspaceId, attempt, result.message)
      if (result.status === 'paid') {
        const { paymentId, amountMicros } = result
        const event = {
          type: 'paid',
          workspaceId,
          paymentId,
          amountMicros,
          attempt,
          savedCard: null,
        } as const
        await applyEvent(event)
      }
    } catch (err) {
      signal.throwIfAborted()
      log.warn({ err, workspaceId }, 'failed to charge the saved card; will retry')
    }
  }

  return { checkout, removeCard, receive, collect }
}

/** Creates the mail about a payment from the saved card that has failed. */
export const createFailureMail =
  ({ billingUrl, autoTopUpMicros }: Pick<PaymentServiceOptions, 'billingUrl' | 'autoTopUpMicros'>) =>
  ({ account, overdraftMicros }: Finances): OwnerMail | null => {
    const { payment_failed_at: failedAt, payment_failure: message, payment_grace_until: graceUntil } = account
    if (failedAt === null || graceUntil === null) return null
    const amount = formatDollars(account.collection_micros ?? autoTopUpMicros)
    const limit = `until ${toTimestamp(graceUntil)}, or until it owes ${formatDollars(overdraftMicros)}`
    return {
      subject: 'The payment for your boxes has failed',
      text: `The payment of ${amount} from the saved card has failed: ${message ?? ''} The boxes of your workspace run on ${limit}. Pay at ${billingUrl}\n`,
    }
  }
