// The idle time of a new box whose request names none.
import type { AdmissionFacts } from './facts.ts'
import { isLimitedMember } from './members.ts'

/** Spec §4.3. */
const FREE_CREDIT_MIN = 120

/** In minutes; null: the box is not suspended when it is idle. */
export function getDefaultAutoPause({
  actor,
  policy,
  billing,
}: Pick<AdmissionFacts, 'actor' | 'policy' | 'billing'>): number | null {
  const limits = [
    isLimitedMember(actor) ? policy.autoPauseFloorMin : null,
    billing?.isFreeCredit ? FREE_CREDIT_MIN : null,
  ].filter((limit) => limit !== null)
  return limits.length === 0 ? null : Math.min(...limits)
}
