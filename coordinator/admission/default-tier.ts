// The tier of a new box whose request names none.
import type { Policy } from '../../shared/api/policies.ts'
import { DEFAULT_TIER, isLargerTier, type Tier } from '../../shared/tiers.ts'
import type { Actor } from '../http/actor.ts'
import { isLimitedMember } from './members.ts'

/** The spec leaves the choice to the service (§4.3). A tier that the member may not use would refuse every such request. */
export function getDefaultTier(actor: Actor, { memberMaxTier: max }: Policy): Tier {
  if (max === null || !isLimitedMember(actor) || isLargerTier(max, DEFAULT_TIER)) return DEFAULT_TIER
  return max
}
