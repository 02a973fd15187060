// The finances of every workspace while billing is off: amounts are 0, and unknown values are null.
import type { Account } from '../../shared/api/account.ts'

export const NO_BILLING: NonNullable<Account['billing']> = {
  balanceMicros: 0,
  burnMicrosPerHour: 0,
  runwayHours: null,
  warnBelowHours: 0,
  planAmountUsd: 0,
  overage: false,
  overdraftMicros: 0,
  collecting: false,
  paymentFailed: false,
  paymentGraceUntil: null,
  trial: false,
  billingUrl: null,
  hold: null,
}
