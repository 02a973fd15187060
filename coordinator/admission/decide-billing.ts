// Decides whether billing admits a request. Pure functions of the request and its facts.
import type { AdmissionFacts } from './facts.ts'
import type { Refusal } from './refusal.ts'
import type { AdmissionAction, AdmissionRequest } from './request.ts'

/** A held workspace can still change the settings of its boxes. */
const ADMITTED_ON_HOLD: ReadonlySet<AdmissionAction> = new Set(['patch'])

const HOLD_MESSAGES = {
  mining:
    'The workspace is paused: its boxes appear to mine cryptocurrency. Contact the operator of this Boxwood.',
  cpu: 'The workspace is paused: its boxes have used all of their CPU for a long time on free credit. Add credit, or contact the operator of this Boxwood.',
} as const

/** Spec §7.1, workspace_held. It is decided before the policies. */
export function decideHold({ action }: AdmissionRequest, { billing }: AdmissionFacts): Refusal | null {
  if (billing === null || billing.hold === null || ADMITTED_ON_HOLD.has(action)) return null
  return { code: 'workspace_held', message: HOLD_MESSAGES[billing.hold] }
}

/** It is decided after the policies. */
export function decideBilling(_request: AdmissionRequest, { billing }: AdmissionFacts): Refusal | null {
  if (billing === null) return null
  return null
}
