// Billing as text: amounts, how long the balance lasts, and the state of the payments.

import type { BillingDetails, BillingEntry } from '../../shared/api/billing.ts'
import type { BoxUsage, DayUsage, MemberUsage } from '../../shared/api/usage.ts'
import { formatCount } from './format-count.ts'
import { formatLocalTime } from './local-time.ts'

export const MICROS_PER_DOLLAR = 1_000_000

/** Such as $4.20, -$0.05, or less than $0.01: the ledger of `box billing --json` has the exact amount. */
export function formatMicros(micros: number): string {
  const amount = Math.abs(micros) / MICROS_PER_DOLLAR
  const isSmall = amount > 0 && amount < 0.01
  return `${micros < 0 ? '-' : ''}${isSmall ? '<$0.01' : `$${amount.toFixed(2)}`}`
}

/** The price of an hour may be less than a cent: with three digits of it, such as $0.00137. */
export function formatPrice(micros: number): string {
  const amount = micros / MICROS_PER_DOLLAR
  if (amount === 0 || amount >= 0.1) return formatMicros(micros)
  const digits = 2 - Math.floor(Math.log10(Math.abs(amount)))
  return `$${amount.toFixed(digits).replace(/(\.\d\d\d*?)0+$/, '$1')}`
}

/** Such as `3 d 5 h` or `40 min`. */
export function formatHours(hours: number): string {
  const minutes = Math.floor(hours * 60)
  const [days, rest] = [Math.floor(minutes / 1440), Math.floor((minutes % 1440) / 60)]
  if (days > 0) return `${days} d ${rest} h`
  return rest > 0 ? `${rest} h ${minutes % 60} min` : `${minutes % 60} min`
}

type Runway = Pick<BillingDetails, 'balanceMicros' | 'overdraftMicros' | 'runwayHours' | 'warnBelowHours'>

/** Boxes are suspended: the balance is empty, and no card counts for more. */
export const isExhausted = ({
  balanceMicros,
  overdraftMicros,
}: Pick<BillingDetails, 'balanceMicros' | 'overdraftMicros'>): boolean => balanceMicros + overdraftMicros <= 0

export function describeRunway(runway: Runway): string {
  const { balanceMicros, overdraftMicros, runwayHours, warnBelowHours } = runway
  if (isExhausted(runway)) return 'The balance is empty: boxes are suspended.'
  if (balanceMicros <= 0)
    return `The balance is empty. Boxes run on until you owe ${formatMicros(overdraftMicros)}.`
  if (runwayHours === null) return 'Nothing is charged now.'
  const isLow = runwayHours < warnBelowHours
  return `${formatHours(runwayHours)}${isLow ? ', then the boxes are suspended' : ''}`
}

const HOLD_REASONS = {
  mining: 'its boxes appear to mine cryptocurrency',
  cpu: 'its boxes have used all of their CPU for a long time on free credit',
} as const

export const describeHold = (hold: NonNullable<BillingDetails['hold']>): string =>
  `An operator has paused the workspace: ${HOLD_REASONS[hold]}. No box can be started.`

type Payment = Pick<
  BillingDetails,
  'provider' | 'paymentFailed' | 'paymentGraceUntil' | 'overdraftMicros' | 'collecting' | 'hasCard'
>

export function describePayment(payment: Payment): string {
  const { provider, paymentFailed, paymentGraceUntil, overdraftMicros, collecting, hasCard } = payment
  if (paymentFailed)
    return paymentGraceUntil === null
      ? 'The last payment has failed.'
      : `The last payment has failed. The boxes run until ${formatLocalTime(Date.parse(paymentGraceUntil))}, or until you owe ${formatMicros(overdraftMicros)}.`
  if (collecting) return 'A payment is in progress.'
  if (provider === 'manual') return 'The operator of this Boxwood adds credit: ask them.'
  return hasCard
    ? `A card pays when the balance is low. You may owe ${formatMicros(overdraftMicros)}.`
    : 'The balance pays. There is no card.'
}

export const formatBoxCount = (boxes: number): string => formatCount(boxes, 'box', 'boxes')

export const describePlan = ({ boxes, snapshots, secrets }: NonNullable<BillingDetails['plan']>): string =>
  `${formatBoxCount(boxes)}, ${formatCount(snapshots, 'snapshot')}, ${formatCount(secrets, 'secret')}`

const KINDS: Record<BillingEntry['kind'], string> = {
  usage: 'usage',
  free_credit: 'free credit',
  credit: 'credit',
  top_up: 'payment',
  adjustment: 'adjustment',
  refund: 'refund',
}

export const describeKind = (kind: BillingEntry['kind']): string => KINDS[kind]

const MONTHS = 12

/** The current month in UTC and the eleven before, newest first. */
export function listMonths(now: number): string[] {
  const date = new Date(now)
  return Array.from({ length: MONTHS }, (_, index) =>
    new Date(Date.UTC(date.getUTCFullYear(), date.getUTCMonth() - index, 1)).toISOString().slice(0, 7),
  )
}

const DAY_MS = 86_400_000
const HOUR_MS = 3_600_000

const getMonthStart = (month: string): number => Date.parse(`${month}-01T00:00:00Z`)
/** The first moment of the next month. */
function getMonthEnd(month: string): number {
  const start = new Date(getMonthStart(month))
  return Date.UTC(start.getUTCFullYear(), start.getUTCMonth() + 1, 1)
}
const countDays = (month: string): number => (getMonthEnd(month) - getMonthStart(month)) / DAY_MS

/** Such as `November`. */
export const formatMonthName = (month: string): string =>
  new Intl.DateTimeFormat('en', { month: 'long', timeZone: 'UTC' }).format(getMonthStart(month))

/**
 * What the month will have cost at its end, if all boxes stay as they are. Null: it is over.
 * @param hourlyMicros what the boxes cost now
 * @param now milliseconds since the epoch
 */
export function forecastMonth(
  { month, totalMicros }: { month: string; totalMicros: number },
  hourlyMicros: number,
  now: number,
): number | null {
  const left = getMonthEnd(month) - now
  return left <= 0 ? null : totalMicros + hourlyMicros * (left / HOUR_MS)
}

/** The cost of a box or a member in the month. */
export type UsageRow = { id: string; name: string; micros: number; computeSeconds: number }

export const toUsageRow = (row: BoxUsage | MemberUsage): UsageRow => {
  const { micros, computeSeconds } = row
  return 'boxId' in row
    ? { id: row.boxId, name: row.hostname ?? `deleted box ${row.boxId.slice(0, 8)}`, micros, computeSeconds }
    : { id: row.userId, name: row.email ?? row.name ?? row.userId, micros, computeSeconds }
}

/** A day of the month with the parts of its bar. `row`: the index of the row; null: all others. */
export type Bar = { day: string; micros: number; parts: { row: number | null; micros: number }[] }

/** The bars of all days of the month. @param rows the highest amount first, as the API has them */
export function listBars({
  month,
  days,
  rows,
}: {
  month: string
  days: readonly DayUsage[]
  rows: readonly UsageRow[]
}): Bar[] {
  const byDay = new Map(days.map((usage) => [usage.day, usage]))
  const indexes = new Map(rows.map(({ id }, index) => [id, index]))
  return Array.from({ length: countDays(month) }, (_, index) => {
    const day = `${month}-${String(index + 1).padStart(2, '0')}`
    const { micros = 0, parts = [] } = byDay.get(day) ?? {}
    const named = parts.flatMap(({ id, micros: amount }) => {
      const row = indexes.get(id)
      return row === undefined || amount <= 0 ? [] : [{ row, micros: amount }]
    })
    const rest = micros - named.reduce((sum, part) => sum + part.micros, 0)
    return { day, micros, parts: rest > 0 ? [...named, { row: null, micros: rest }] : named }
  })
}

/** The smallest of 1, 2, 4 and 5 times a power of ten that is not below the amount: the end of an axis. */
export function roundUp(micros: number): number {
  const power = 10 ** Math.floor(Math.log10(Math.max(micros, 1)))
  return ([1, 2, 4, 5, 10].find((factor) => factor * power >= micros) ?? 10) * power
}

const AMOUNT = /^\d{1,5}(\.\d{1,2})?$/

/** The amount that a person has typed, in dollars; null: it is none. */
export function parseAmount(text = ''): number | null {
  const digits = text.trim().replace(/^\$/, '')
  const amount = AMOUNT.test(digits) ? Number(digits) : 0
  return amount > 0 ? amount : null
}
