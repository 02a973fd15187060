// Asks for the admission of a request, in the transaction of the request.
import type { Policy } from '../../shared/api/policies.ts'
import type { Clock } from '../../shared/clock.ts'
import { ApiError } from '../../shared/errors.ts'
import type { Tier } from '../../shared/tiers.ts'
import { lockWorkspace } from '../db/lock-workspace.ts'
import type { Trx } from '../db/transaction.ts'
import type { Actor } from '../http/actor.ts'
import { confirmRole } from '../identity/confirm-actor.ts'
import { findWorkspace } from '../identity/lookups.ts'
import { loadPolicy } from '../identity/policies/service.ts'
import { type LoadBilling, needsFunds } from './billing-facts.ts'
import { type DecideAdmission, decide as decideAdmission } from './decide.ts'
import { addsBox } from './decide-policies.ts'
import { getDefaultAutoPause } from './default-auto-pause.ts'
import { getDefaultTier } from './default-tier.ts'
import type { AdmissionFacts } from './facts.ts'
import { isLimitedMember } from './members.ts'
import type { AdmissionAction, AdmissionQuestion, AdmissionRequest } from './request.ts'

/** What an admitted request must respect. */
export type Admission = {
  /** The idle time of a new box whose request names none, in minutes; null: it is not suspended when it is idle. */
  defaultAutoPauseMin: number | null
  /** The tier of a new box whose request names none. */
  defaultTier: Tier
}

export type Admit = {
  /**
   * Throws the refusal as an ApiError. Call it after the other checks of the request, and before the first write. The request
   * may have locked boxes, and no environment and no snapshot.
   */
  (trx: Trx, actor: Actor, request: AdmissionQuestion): Promise<Admission>
  /**
   * The first half of the call, for a request whose checks lock environments or snapshots: these are locked after the workspace.
   * The returned function is the other half.
   */
  begin(
    trx: Trx,
    actor: Actor,
    action: AdmissionAction,
  ): Promise<(request: AdmissionQuestion) => Promise<Admission>>
}

export type AdmitOptions = {
  clock: Clock
  /** The number of boxes that the user has created and that are not deleted or being deleted. */
  countLiveBoxes(trx: Trx, workspaceId: string, userId: string): Promise<number>
  /** Default: billing is off. */
  loadBilling?: LoadBilling
  decide?: DecideAdmission
}

export function createAdmit(options: AdmitOptions): Admit {
  const { clock, countLiveBoxes, loadBilling, decide = decideAdmission } = options

  const begin: Admit['begin'] = async (trx, actor, action) => {
    const { workspaceId, userId } = actor
    const policy = await loadPolicy(trx, workspaceId)
    const countsBoxes = userId !== null && isCountLimited(policy, actor, action)
    // Two requests at once must not pass a limit together, and a new box of a member is subject to the rules of the role at its commit. With
    // billing, loadBilling() locks the account of a request that needs funds, and the request may lock the workspace later: both
    // are always locked in this order.
    const isLocked = addsBox(action) || (loadBilling !== undefined && needsFunds(action))
    const workspace = await (isLocked ? lockWorkspace : findWorkspace)(trx, workspaceId)
    if (!workspace) throw new Error(`There is no workspace ${workspaceId}.`)
    if (addsBox(action)) await confirmRole(trx, actor)
    const ownBoxes = countsBoxes ? await countLiveBoxes(trx, workspaceId, userId) : null

    return async (question) => {
      const billing = (await loadBilling?.(trx, actor, action)) ?? null
      const facts: AdmissionFacts = { actor, workspace, policy, ownBoxes, billing, now: clock.now() }
      const defaultTier = getDefaultTier(facts)
      const refusal = decide(withTier(question, defaultTier), facts)
      if (refusal === null) return { defaultAutoPauseMin: getDefaultAutoPause(facts), defaultTier }
      const { code, message, ...fields } = refusal
      throw new ApiError(code, message, { fields })
    }
  }

  const admit = async (trx: Trx, actor: Actor, request: AdmissionQuestion): Promise<Admission> => {
    const decide = await begin(trx, actor, request.action)
    return decide(request)
  }
  return Object.assign(admit, { begin })
}

const withTier = (question: AdmissionQuestion, tier: Tier): AdmissionRequest =>
  question.action === 'create' ? { ...question, tier: question.tier ?? tier } : question

const isCountLimited = (policy: Policy, actor: Actor, action: AdmissionAction): boolean =>
  policy.memberBoxLimit !== null && addsBox(action) && isLimitedMember(actor)
