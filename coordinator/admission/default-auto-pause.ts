// The idle time of a new box whose request names none.
import type { AdmissionFacts } from './facts.ts'
import { isLimitedMember } from './members.ts'

/** In minutes; null: the box is not suspended when it is idle. */
export function getDefaultAutoPause({
  actor,
  policy,
  billing,
}: Pick<AdmissionFacts, 'actor' | 'policy' | 'billing'>): number | null {
  const limits = [
    isLimitedMember(actor) ? policy.autoPauseFloorMin : null,
    billing?.plan.defaultAutoPauseMin ?? null,
  ].filter((limit) => limit !== null)
  return limits.length === 0 ? null : Math.min(...limits)
}
