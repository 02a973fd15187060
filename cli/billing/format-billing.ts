// Formats the finances of a workspace.
import type { Account } from '../../shared/api/account.ts'
import { formatDollars, formatPrice } from '../../shared/format-dollars.ts'
import { HOLD_MESSAGES } from '../../shared/hold-messages.ts'
import { formatDuration } from '../output/format.ts'
import { formatTable } from '../output/table.ts'

type Billing = NonNullable<Account['billing']>

const HOUR_MS = 3_600_000

/** The coordinator warns at least an hour before the balance is empty, if billing is on. */
const isOff = ({ warnBelowHours }: Billing): boolean => warnBelowHours === 0

export function formatBilling(billing: Billing): string {
  if (isOff(billing)) return 'Billing is off: nothing has a price on this coordinator.'
  const { balanceMicros, burnMicrosPerHour, planAmountUsd, trial, billingUrl, hold } = billing
  const table = formatTable([
    ['balance', formatDollars(balanceMicros)],
    ['burn', `${formatPrice(burnMicrosPerHour)} an hour`],
    ['runway', formatRunway(billing)],
    ['plan', trial ? 'free credit' : `paid${planAmountUsd > 0 ? `, $${planAmountUsd} a month` : ''}`],
    ['payment', describePayment(billing)],
    ['pay', billingUrl === null ? 'the operator of the coordinator adds credit' : `at ${billingUrl}`],
  ])
  return hold ? `${HOLD_MESSAGES[hold]}\n${table}` : table
}

function formatRunway(billing: Billing): string {
  const { balanceMicros, overdraftMicros, runwayHours, warnBelowHours } = billing
  if (balanceMicros + overdraftMicros <= 0) return 'the balance is empty'
  if (balanceMicros <= 0)
    return `the balance is empty; boxes run until ${formatDollars(overdraftMicros)} are owed`
  if (runwayHours === null) return 'nothing is charged now'
  const isLow = runwayHours < warnBelowHours
  return `${formatDuration(runwayHours * HOUR_MS)}${isLow ? `, less than ${warnBelowHours}h` : ''}`
}

function describePayment(billing: Billing): string {
  const { paymentFailed, paymentGraceUntil, collecting, overage, overdraftMicros } = billing
  const limit = formatDollars(overdraftMicros)
  if (paymentFailed)
    return paymentGraceUntil === null
      ? 'failed'
      : `failed; the boxes run until ${paymentGraceUntil}, or until ${limit} are owed`
  if (collecting) return 'in progress'
  return overage ? `by card, up to ${limit} beyond the balance` : 'from the balance'
}
