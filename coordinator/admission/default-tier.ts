// The tier of a new box without a source whose request names none. The spec leaves the choice to the service (§4.3).
import { DEFAULT_TIER, isLargerTier, TIER_NAMES, type Tier } from '../../shared/tiers.ts'
import type { BillingFacts, Funds } from './billing-facts.ts'
import type { AdmissionFacts } from './facts.ts'
import { isLimitedMember } from './members.ts'

/** Spec §4.3: the balance runs the box comfortably, with all others. */
const COMFORTABLE_HOURS = 24

/** A tier that the member may not use would refuse every such request. */
export function getDefaultTier({
  actor,
  policy: { memberMaxTier: max },
  billing,
}: Pick<AdmissionFacts, 'actor' | 'policy' | 'billing'>): Tier {
  const tier = billing?.funds ? chooseByBalance(billing.funds, billing) : DEFAULT_TIER
  return max !== null && isLimitedMember(actor) && isLargerTier(tier, max) ? max : tier
}

/** That of the plan, or the largest one below for which the balance lasts for a day; at least the smallest tier. */
function chooseByBalance(funds: Funds, { plan }: BillingFacts): Tier {
  const { balanceMicros, overdraftMicros, burnMicrosPerHour, reservedMicrosPerHour, rates } = funds
  const others = burnMicrosPerHour + reservedMicrosPerHour
  const lasts = (tier: Tier) =>
    balanceMicros + overdraftMicros >= COMFORTABLE_HOURS * (others + rates.compute(tier))
  const tiers = TIER_NAMES.slice(0, TIER_NAMES.indexOf(plan.defaultTier) + 1)
  return tiers.findLast(lasts) ?? TIER_NAMES[0]
}
