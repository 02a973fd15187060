// The refusals of requests by billing, policies and the state of the workspace.
import type { ErrorCode } from '../../shared/errors.ts'
import type { Tier } from '../../shared/tiers.ts'
import type { AdmissionAction } from './request.ts'

/** Spec §7.1. `message` replaces the default message of the code. */
export type Refusal = { message?: string } & (
  | {
      code: 'insufficient_balance'
      balanceMicros: number
      requiredMicros: number
      burnMicrosPerHour: number
      admissionMicrosPerHour: number
    }
  | { code: 'wake_rejected'; reason: string; cause: string; billingUrl?: string }
  | { code: 'tier_unavailable'; allowed: readonly Tier[] }
  | { code: 'restore_tier_not_allowed' }
  | { code: 'share_links_need_payment' }
  | { code: 'box_limit'; limit: number }
  | { code: 'policy_denied'; rule: PolicyRule }
  | { code: 'workspace_held' }
  | { code: 'workspace_closing' }
)

export type PolicyRule =
  | 'memberSpendCapUsd'
  | 'memberBoxLimit'
  | 'memberMaxTier'
  | 'autoPauseFloorMin'
  | 'allowedImages'
  | 'contractor_restricted'
  | 'machineEnrollment'

const CREATE_ERRORS = [
  'insufficient_balance',
  'tier_unavailable',
  'box_limit',
  'policy_denied',
  'workspace_held',
  'workspace_closing',
] as const

/** The codes with which each action can be refused, for the OpenAPI document. */
export const ADMISSION_ERRORS = {
  create: CREATE_ERRORS,
  enroll: ['box_limit', 'policy_denied', 'workspace_held', 'workspace_closing'],
  fork: CREATE_ERRORS,
  restore: [
    'insufficient_balance',
    'restore_tier_not_allowed',
    'box_limit',
    'policy_denied',
    'workspace_held',
    'workspace_closing',
  ],
  wake: ['wake_rejected', 'policy_denied', 'workspace_held', 'workspace_closing'],
  resize: [
    'insufficient_balance',
    'tier_unavailable',
    'policy_denied',
    'workspace_held',
    'workspace_closing',
  ],
  move: ['workspace_held', 'workspace_closing'],
  patch: ['policy_denied', 'workspace_closing'],
  give: ['policy_denied', 'workspace_closing'],
  snapshot: ['workspace_held', 'workspace_closing'],
  template: ['workspace_held', 'workspace_closing'],
  share: ['share_links_need_payment', 'workspace_held', 'workspace_closing'],
  pull: ['policy_denied', 'workspace_held', 'workspace_closing'],
} as const satisfies Record<AdmissionAction, readonly (Refusal['code'] & ErrorCode)[]>
