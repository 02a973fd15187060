// Evaluates the balance of a workspace: a pure function of its finances and the time.
import type { Finances } from './service.ts'
import { HOUR_SECONDS } from './usage.ts'

export type BalanceState = {
  /** The balance lasts for less than the hours of the warning, or is empty, and no card is trusted. */
  isLow: boolean
  /** Boxes that run must be suspended: the balance is empty, and the workspace may not owe more. */
  isEmpty: boolean
  /** When the state can change next without a change of a box, in milliseconds since the epoch. */
  nextAt: number
}

const MS = 1000
const HOUR_MS = HOUR_SECONDS * MS

/**
 * The charge of an hour waits for this time, so that a change of a box that was made in the last second of the hour has been
 * committed.
 */
export const CHARGE_DELAY_MS = 60_000

export type EvaluationOptions = {
  /** Milliseconds since the epoch. */
  now: number
  warnBelowHours: number
  /** The saved card that is trusted (overdraft.ts); null: there is none. */
  card: { overdraftMicros: number } | null
}

export function evaluateBalance(
  { balanceMicros, burnMicrosPerHour }: Pick<Finances, 'balanceMicros' | 'burnMicrosPerHour'>,
  { now, warnBelowHours, card }: EvaluationOptions,
): BalanceState {
  const nextHour = (Math.floor(now / HOUR_MS) + 1) * HOUR_MS + CHARGE_DELAY_MS
  const isCharged = burnMicrosPerHour > 0
  const isShort = balanceMicros <= 0 || (isCharged && balanceMicros < warnBelowHours * burnMicrosPerHour)
  const isLow = isShort && card === null
  const availableMicros = balanceMicros + (card?.overdraftMicros ?? 0)
  const isEmpty = availableMicros <= 0
  if (!isCharged || isEmpty) return { isLow, isEmpty, nextAt: nextHour }
  const emptyAt = now + Math.ceil((availableMicros / burnMicrosPerHour) * HOUR_MS)
  const times = [nextHour, emptyAt, ...(isShort || card !== null ? [] : [emptyAt - warnBelowHours * HOUR_MS])]
  // A second later, because usage is counted in whole seconds.
  return { isLow, isEmpty, nextAt: Math.min(...times) + MS }
}
