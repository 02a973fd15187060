// What a saved card is trusted with: how much a workspace may owe, and what the card pays at once. Pure functions.
import { REQUIRED_HOURS } from '../admission/decide-billing.ts'
import type { BillingAccountRow } from './store/tables.ts'

type CardState = Pick<
  BillingAccountRow,
  'payment_method_id' | 'payment_failed_at' | 'payment_grace_until' | 'card_paid_micros'
>

/** The saved card is charged when the balance is low: its last payment has not failed. */
export const hasWorkingCard = ({
  payment_method_id: card,
  payment_failed_at: failedAt,
}: Pick<CardState, 'payment_method_id' | 'payment_failed_at'>): boolean => card !== null && failedAt === null

/** The saved card works, or its last payment has failed a short time ago. @param now milliseconds since the epoch */
export const isCardTrusted = (
  account: Pick<CardState, 'payment_method_id' | 'payment_failed_at' | 'payment_grace_until'>,
  now: number,
): boolean =>
  hasWorkingCard(account) ||
  (account.payment_method_id !== null &&
    account.payment_grace_until !== null &&
    now < account.payment_grace_until)

export type OverdraftLimits = {
  /** The most that any workspace may owe, in micro-dollars. */
  maxMicros: number
  /** Milliseconds since the epoch. */
  now: number
}

/**
 * What the workspace may owe while its boxes run, in micro-dollars: as much as its saved card has paid. A workspace that does not
 * pay in the end has therefore paid for at least half of what it used.
 */
export const overdraftOf = (account: CardState, { maxMicros, now }: OverdraftLimits): number =>
  isCardTrusted(account, now) ? Math.min(account.card_paid_micros, maxMicros) : 0

/** The largest payment of a checkout. */
const MAX_COLLECTION_MICROS = 1_000_000_000
const MICROS_PER_CENT = 10_000

/**
 * What the saved card pays at once, when the balance is below this amount: that of the operator, or what the boxes cost in the
 * hours for which a balance must last, if this is more. Boxes at a high rate are paid for before they run, so a card that does not
 * pay is known early.
 * @returns micro-dollars, in whole cents
 */
export function collectionOf(
  rates: { burnMicrosPerHour: number; reservedMicrosPerHour: number },
  topUpMicros: number,
): number {
  const cost = REQUIRED_HOURS * (rates.burnMicrosPerHour + rates.reservedMicrosPerHour)
  const cents = Math.ceil(Math.min(cost, MAX_COLLECTION_MICROS) / MICROS_PER_CENT)
  return Math.max(topUpMicros, cents * MICROS_PER_CENT)
}
