// Decides whether billing and the policies of the workspace admit a request. A pure function of the request and its facts.
import type { Policy } from '../../../shared/api/policies.ts'
import type { PortAudience } from '../../../shared/api/port-shares.ts'
import type { ErrorCode } from '../../../shared/errors.ts'
import type { Region, Tier } from '../../../shared/tiers.ts'
import type { BoxRow, WorkspaceRow } from '../../db/schema.ts'
import type { Actor } from '../../http/actor.ts'

/** The names of the image of the new box, any of which a policy may allow. Empty: the box has no image. */
type ImageNames = { imageNames: readonly string[] }

/** `box` is the row before the change. For a fork and a snapshot, `box` is the source. */
export type AdmissionRequest =
  | ({ action: 'create'; tier: Tier; autoPauseMin: number | null } & ImageNames)
  /** The tier of a machine is null when its size is not known yet, because the request creates the token. */
  | { action: 'enroll'; tier: Tier | null }
  | { action: 'wake'; box: BoxRow }
  | { action: 'resize'; box: BoxRow; tier: Tier }
  | { action: 'move'; box: BoxRow; region: Region }
  | ({ action: 'fork'; box: BoxRow; tier: Tier } & ImageNames)
  | ({ action: 'restore'; tier: Tier } & ImageNames)
  /** autoPauseMin: undefined when the request does not change it. */
  | { action: 'patch'; box: BoxRow; autoPauseMin: number | null | undefined }
  | { action: 'snapshot'; box: BoxRow }
  | { action: 'template'; box: BoxRow }
  /** A download of the image for later boxes. */
  | ({ action: 'pull' } & ImageNames)
  | { action: 'share'; access: PortAudience }

export type AdmissionAction = AdmissionRequest['action']

export type AdmissionFacts = { actor: Actor; workspace: WorkspaceRow; policy: Policy }

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

/** null: the request is admitted. */
export type DecideAdmission = (request: AdmissionRequest, facts: AdmissionFacts) => Refusal | null

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
  restore: CREATE_ERRORS,
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
  snapshot: ['workspace_held', 'workspace_closing'],
  template: ['workspace_held', 'workspace_closing'],
  share: ['workspace_held', 'workspace_closing'],
  pull: ['policy_denied', 'workspace_held', 'workspace_closing'],
} as const satisfies Record<AdmissionAction, readonly (Refusal['code'] & ErrorCode)[]>

/** There are no balances. Of the policies, allowedImages is enforced here. */
export const decide: DecideAdmission = (request, { workspace, policy }) => {
  if (workspace.closing_at !== null) return { code: 'workspace_closing' }
  return 'imageNames' in request ? refuseImage(request.imageNames, policy) : null
}

function refuseImage([image, ...others]: readonly string[], { allowedImages }: Policy): Refusal | null {
  if (image === undefined || allowedImages === null) return null
  const names = [image, ...others]
  if (names.some((name) => allowedImages.some((pattern) => matchesPattern(name, pattern)))) return null
  const allowed = allowedImages.length === 0 ? 'It allows none' : `It allows ${allowedImages.join(', ')}`
  const message = `The policy allowedImages of the workspace does not allow the image ${image}. ${allowed}.`
  return { code: 'policy_denied', rule: 'allowedImages', message }
}

/** Whether the text matches the pattern, in which `*` stands for any text. Takes linear time for each `*`. */
function matchesPattern(text: string, pattern: string): boolean {
  const [start = '', ...parts] = pattern.split('*')
  const end = parts.pop()
  if (end === undefined) return text === pattern
  if (!text.startsWith(start) || !text.endsWith(end) || text.length < start.length + end.length) return false
  let position = start.length
  for (const part of parts) {
    const found = text.indexOf(part, position)
    if (found === -1) return false
    position = found + part.length
  }
  return position <= text.length - end.length
}
