// The facts by which a request is admitted.
import type { Policy } from '../../shared/api/policies.ts'
import type { WorkspaceRow } from '../db/schema.ts'
import type { Actor } from '../http/actor.ts'
import type { BillingFacts } from './billing-facts.ts'

export type AdmissionFacts = {
  actor: Actor
  workspace: WorkspaceRow
  policy: Policy
  /** The live boxes of the member who sends the request; null: they are not counted, because no policy limits them. */
  ownBoxes: number | null
  /** null: billing is off. */
  billing: BillingFacts | null
  /** Milliseconds since the epoch. */
  now: number
}
