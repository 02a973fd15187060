// Decides whether billing and the policies of the workspace admit a request. A pure function of the request and its facts.
import { decideBilling, decideHold } from './decide-billing.ts'
import { decidePolicies } from './decide-policies.ts'
import type { AdmissionFacts } from './facts.ts'
import type { Refusal } from './refusal.ts'
import type { AdmissionRequest } from './request.ts'

/** null: the request is admitted. */
export type DecideAdmission = (request: AdmissionRequest, facts: AdmissionFacts) => Refusal | null

/** The first refusal counts. A closing workspace is refused whatever else is wrong. */
export const decide: DecideAdmission = (request, facts) => {
  if (facts.workspace.closing_at !== null) return { code: 'workspace_closing' }
  return decideHold(request, facts) ?? decidePolicies(request, facts) ?? decideBilling(request, facts)
}
