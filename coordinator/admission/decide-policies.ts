// Decides whether the policies of the workspace admit a request (spec §2.9, §4.11). Pure functions of the request and its facts.
import { formatCount } from '../../shared/format-count.ts'
import { formatDollars } from '../../shared/format-dollars.ts'
import { isLargerTier, type Tier } from '../../shared/tiers.ts'
import { findCycle } from '../base/billing-cycle.ts'
import { refuseImage } from './allowed-images.ts'
import type { AdmissionFacts } from './facts.ts'
import { isLimitedMember } from './members.ts'
import type { PolicyRule, Refusal } from './refusal.ts'
import type { AdmissionAction, AdmissionRequest } from './request.ts'

type Rule = (request: AdmissionRequest, facts: AdmissionFacts) => Refusal | null

const MICROS_PER_DOLLAR = 1_000_000

/** What the client can correct in the request comes before what only time or an owner changes. */
const MEMBER_RULES: readonly Rule[] = [
  refuseUnrestricted,
  refuseTier,
  refuseAutoPause,
  refuseBoxCount,
  refuseSpend,
]

/** The requests after which the member has one more box. */
const ADDING_ACTIONS: ReadonlySet<AdmissionAction> = new Set(['create', 'enroll', 'fork', 'restore', 'give'])

export const addsBox = (action: AdmissionAction): boolean => ADDING_ACTIONS.has(action)

export function decidePolicies(request: AdmissionRequest, facts: AdmissionFacts): Refusal | null {
  const refusal = 'imageNames' in request ? refuseImage(request.imageNames, facts.policy) : null
  if (refusal !== null || !isLimitedMember(facts.actor)) return refusal
  for (const rule of MEMBER_RULES) {
    const refusal = rule(request, facts)
    if (refusal !== null) return refusal
  }
  return null
}

const deny = (rule: PolicyRule, message: string): Refusal => ({ code: 'policy_denied', rule, message })

/** Spec §4.3: a contractor's box is always restricted. */
function refuseUnrestricted(request: AdmissionRequest, { actor }: AdmissionFacts): Refusal | null {
  if (request.action !== 'create' || actor.role !== 'contractor' || request.restricted !== false) return null
  return deny(
    'contractor_restricted',
    'The boxes of contractors are always restricted. Leave restricted out, or set it to true.',
  )
}

function refuseTier(request: AdmissionRequest, { policy }: AdmissionFacts): Refusal | null {
  const { memberMaxTier: max } = policy
  const tier = getTier(request)
  if (max === null || tier === null || !isLargerTier(tier, max)) return null
  const allowed = `the policy memberMaxTier of the workspace lets members use tiers up to ${max}`
  if (request.action !== 'wake')
    return deny(
      'memberMaxTier',
      `The tier ${tier} is too large: ${allowed}. Choose a smaller tier, or ask an owner of the workspace.`,
    )
  const { hostname } = request.box
  return deny(
    'memberMaxTier',
    `Box ${hostname} has the tier ${tier}, and ${allowed}. Resize it with \`box resize ${hostname} ${max}\`, or ask an owner of the workspace to wake it.`,
  )
}

/** The tier that a box runs with after the request; null: the request starts no managed box. */
function getTier(request: AdmissionRequest): Tier | null {
  switch (request.action) {
    case 'create':
    case 'fork':
    case 'restore':
    case 'resize':
      return request.tier
    case 'wake':
      return request.box.tier
    default:
      return null
  }
}

function refuseAutoPause(request: AdmissionRequest, { policy }: AdmissionFacts): Refusal | null {
  const { autoPauseFloorMin: longest } = policy
  if (longest === null || (request.action !== 'create' && request.action !== 'patch')) return null
  // An enrolled machine has no idle time, and null changes nothing.
  if (request.action === 'patch' && request.box.kind === 'machine') return null
  const { autoPauseMin: minutes } = request
  if (minutes === undefined || (minutes !== null && minutes <= longest)) return null
  const problem =
    minutes === null
      ? `autoPauseMin must not be null: the policy autoPauseFloorMin of the workspace lets boxes of members be idle for at most ${longest} minutes.`
      : `autoPauseMin must be at most ${longest}: the policy autoPauseFloorMin of the workspace does not let boxes of members be idle for longer.`
  return deny('autoPauseFloorMin', `${problem} Choose a shorter time, or ask an owner of the workspace.`)
}

function refuseBoxCount(request: AdmissionRequest, { policy, ownBoxes }: AdmissionFacts): Refusal | null {
  const { memberBoxLimit: limit } = policy
  if (limit === null || ownBoxes === null || ownBoxes < limit || !addsBox(request.action)) return null
  const boxes = formatCount(ownBoxes, 'box', 'boxes')
  const advice =
    request.action === 'give'
      ? 'Delete a box of this member first, or raise the limit.'
      : 'Delete a box with `box rm`, or ask an owner of the workspace.'
  return deny(
    'memberBoxLimit',
    `${nameMember(request)} ${boxes}, and the policy memberBoxLimit of the workspace allows each member ${limit}. ${advice}`,
  )
}

/** The subject and the verb of a sentence about the member of the facts. */
const nameMember = (request: AdmissionRequest): string =>
  request.action === 'give' ? `${request.receiverName} has` : 'You have'

function refuseSpend(request: AdmissionRequest, { policy, billing, now }: AdmissionFacts): Refusal | null {
  const { memberSpendCapUsd: cap } = policy
  if (cap === null || !addsSpend(request)) return null
  const spentMicros = billing?.funds?.spentThisCycleMicros ?? 0
  const capMicros = Math.round(cap * MICROS_PER_DOLLAR)
  if (spentMicros < capMicros) return null
  return deny(
    'memberSpendCapUsd',
    `${nameMember(request)} spent ${formatDollars(spentMicros)} in this billing cycle, and the policy memberSpendCapUsd of the workspace allows each member ${formatDollars(capMicros)}. Wait until the cycle ends at ${findCycle(now).end}, or ask an owner of the workspace.`,
  )
}

function addsSpend(request: AdmissionRequest): boolean {
  switch (request.action) {
    case 'create':
    case 'fork':
    case 'restore':
    case 'wake':
      return true
    case 'resize':
      return isLargerTier(request.tier, request.box.tier)
    // An enrolled machine costs nothing.
    case 'give':
      return request.box.kind === 'managed'
    default:
      return false
  }
}
