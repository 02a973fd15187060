// The facts of billing for tests of admissions: a workspace that has paid, with a large balance and no boxes.
import type { BillingFacts, Funds } from '../../coordinator/admission/billing-facts.ts'
import { PLANS } from '../../coordinator/billing/plans.ts'
import { DEFAULT_PRICES, diskMicros, pricesAt } from '../../coordinator/billing/prices.ts'

const prices = pricesAt(DEFAULT_PRICES, 0)

export type FactChanges = Partial<Omit<BillingFacts, 'funds'> & Funds>

export function createBillingFacts(changes: FactChanges = {}): BillingFacts {
  const { isFreeCredit = false, plan = PLANS.paid, hold = null, billingUrl = null, ...funds } = changes
  return {
    isFreeCredit,
    plan,
    hold,
    billingUrl,
    funds: {
      balanceMicros: 1_000_000_000,
      burnMicrosPerHour: 0,
      reservedMicrosPerHour: 0,
      overdraftMicros: 0,
      liveBoxes: 0,
      spentThisCycleMicros: 0,
      rates: { compute: (tier) => prices.compute[tier], disk: (tier) => diskMicros(tier, prices) },
      ...funds,
    },
  }
}
