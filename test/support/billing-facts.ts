// The facts of billing for tests of admissions: a workspace that has paid, with a large balance and no boxes.
import type { BillingFacts } from '../../coordinator/admission/billing-facts.ts'
import { PLANS } from '../../coordinator/billing/plans.ts'
import { DEFAULT_PRICES, diskMicros, pricesAt } from '../../coordinator/billing/prices.ts'

const prices = pricesAt(DEFAULT_PRICES, 0)

export const createBillingFacts = (changes: Partial<BillingFacts> = {}): BillingFacts => ({
  balanceMicros: 1_000_000_000,
  burnMicrosPerHour: 0,
  reservedMicrosPerHour: 0,
  isFreeCredit: false,
  plan: PLANS.paid,
  liveBoxes: 0,
  hold: null,
  mayOverdraw: false,
  billingUrl: null,
  spentThisCycleMicros: 0,
  rates: { compute: (tier) => prices.compute[tier], disk: (tier) => diskMicros(tier, prices) },
  ...changes,
})
