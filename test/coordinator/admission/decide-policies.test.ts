// The rules of the policies at their edges, for each action and role (spec §2.9, §4.3, §4.11).

import t from 'tap'
import { decide } from '../../../coordinator/admission/decide.ts'
import { getDefaultAutoPause } from '../../../coordinator/admission/default-auto-pause.ts'
import { getDefaultTier } from '../../../coordinator/admission/default-tier.ts'
import type { AdmissionFacts } from '../../../coordinator/admission/facts.ts'
import { ADMISSION_ERRORS, type PolicyRule } from '../../../coordinator/admission/refusal.ts'
import type { AdmissionAction, AdmissionRequest } from '../../../coordinator/admission/request.ts'
import { PLANS } from '../../../coordinator/billing/plans.ts'
import type { BoxRow, WorkspaceRow } from '../../../coordinator/db/schema.ts'
import type { Actor } from '../../../coordinator/http/actor.ts'
import { DEFAULT_POLICY, type Policy } from '../../../shared/api/policies.ts'
import { TIER_NAMES, type Tier } from '../../../shared/tiers.ts'
import { createBillingFacts } from '../../support/billing-facts.ts'

type Role = Actor['role'] | 'key without a user'

const ACTORS: Record<Role, Actor> = {
  owner: { role: 'owner', userId: 'usr_1' } as Actor,
  member: { role: 'member', userId: 'usr_2' } as Actor,
  contractor: { role: 'contractor', userId: 'usr_3' } as Actor,
  'key without a user': { role: 'member', userId: null } as Actor,
}
const LIMITED: readonly Role[] = ['member', 'contractor']
const ROLES = Object.keys(ACTORS) as Role[]

const box = (tier: Tier, fields: Partial<BoxRow> = {}) =>
  ({ hostname: 'fig', kind: 'managed', tier, auto_pause_min: null, ...fields }) as BoxRow

/** A request of each action with this tier, which starts from a box of the tier lite. */
const createRequests = (tier: Tier): Record<AdmissionAction, AdmissionRequest> => ({
  create: { action: 'create', tier, autoPauseMin: undefined, restricted: undefined, imageNames: [] },
  enroll: { action: 'enroll', tier },
  wake: { action: 'wake', box: box(tier) },
  resize: { action: 'resize', box: box('lite'), tier },
  move: { action: 'move', box: box(tier), region: 'eu-central-1' },
  fork: { action: 'fork', box: box('lite'), tier, imageNames: [] },
  restore: { action: 'restore', tier, imageNames: [] },
  patch: { action: 'patch', box: box(tier), autoPauseMin: undefined },
  give: { action: 'give', box: box(tier), receiverName: 'Ada' },
  snapshot: { action: 'snapshot', box: box(tier) },
  template: { action: 'template', box: box(tier) },
  pull: { action: 'pull', imageNames: [] },
  share: { action: 'share', access: 'members' },
})
const ACTIONS = Object.keys(createRequests('lite')) as AdmissionAction[]

const createFacts = (
  policy: Partial<Policy>,
  fields: Partial<Omit<AdmissionFacts, 'policy'>> = {},
): AdmissionFacts => ({
  actor: ACTORS.member,
  workspace: { closing_at: null } as WorkspaceRow,
  policy: { ...DEFAULT_POLICY, ...policy },
  ownBoxes: null,
  billing: null,
  now: Date.UTC(2026, 1, 10),
  ...fields,
})

/** The rule that refuses the request; null: it is admitted. */
function findRule(request: AdmissionRequest, facts: AdmissionFacts): PolicyRule | null {
  const refusal = decide(request, facts)
  if (refusal === null) return null
  if (refusal.code !== 'policy_denied') throw new Error(`refused with ${refusal.code}`)
  t.ok(
    ADMISSION_ERRORS[request.action].some((code) => code === 'policy_denied'),
    'the code is documented',
  )
  t.match(refusal.message, refusal.rule === 'contractor_restricted' ? /restricted/ : refusal.rule)
  return refusal.rule
}

const getMessage = (request: AdmissionRequest, facts: AdmissionFacts) => decide(request, facts)?.message

t.test('memberMaxTier: what starts or resizes a box, above the value', async (t) => {
  const affected: AdmissionAction[] = ['create', 'fork', 'restore', 'resize', 'wake']
  for (const tier of TIER_NAMES)
    for (const action of ACTIONS)
      for (const role of ROLES) {
        const facts = createFacts({ memberMaxTier: 'flow' }, { actor: ACTORS[role] })
        const isLarger = ['pro', 'max', 'ultra'].includes(tier)
        const isRefused = isLarger && affected.includes(action) && LIMITED.includes(role)
        const expected = isRefused ? 'memberMaxTier' : null
        t.equal(findRule(createRequests(tier)[action], facts), expected, `${role}: ${action} ${tier}`)
      }
  const facts = createFacts({ memberMaxTier: 'nano' })
  t.match(getMessage(createRequests('lite').wake, facts), /Resize it with `box resize fig nano`/)
  t.equal(findRule({ action: 'resize', box: box('ultra'), tier: 'micro' }, facts), 'memberMaxTier')
  t.equal(findRule({ action: 'resize', box: box('ultra'), tier: 'nano' }, facts), null)
})

t.test('memberBoxLimit: what adds a box, from the value on', async (t) => {
  const affected: AdmissionAction[] = ['create', 'enroll', 'fork', 'restore', 'give']
  const cases: [ownBoxes: number | null, isReached: boolean][] = [
    [null, false],
    [0, false],
    [2, false],
    [3, true],
    [4, true],
  ]
  for (const [ownBoxes, isReached] of cases)
    for (const action of ACTIONS)
      for (const role of ROLES) {
        const facts = createFacts({ memberBoxLimit: 3 }, { actor: ACTORS[role], ownBoxes })
        const isRefused = isReached && affected.includes(action) && LIMITED.includes(role)
        const expected = isRefused ? 'memberBoxLimit' : null
        t.equal(findRule(createRequests('lite')[action], facts), expected, `${role}: ${action} ${ownBoxes}`)
      }
})

t.test('memberSpendCapUsd: what costs more, from the value on', async (t) => {
  const affected: AdmissionAction[] = ['create', 'fork', 'restore', 'wake', 'resize', 'give']
  const cases: [spentThisCycleMicros: number | null, isReached: boolean][] = [
    [null, false],
    [12_339_999, false],
    [12_340_000, true],
    [99_000_000, true],
  ]
  for (const [spentThisCycleMicros, isReached] of cases)
    for (const action of ACTIONS)
      for (const role of ROLES) {
        const facts = createFacts(
          { memberSpendCapUsd: 12.34 },
          { actor: ACTORS[role], billing: createBillingFacts({ spentThisCycleMicros }) },
        )
        const isRefused = isReached && affected.includes(action) && LIMITED.includes(role)
        const expected = isRefused ? 'memberSpendCapUsd' : null
        t.equal(findRule(createRequests('flow')[action], facts), expected, `${role}: ${action}`)
      }
  const facts = createFacts(
    { memberSpendCapUsd: 12.34 },
    { billing: createBillingFacts({ spentThisCycleMicros: 13_000_000 }) },
  )
  for (const tier of ['nano', 'lite'] as const)
    t.equal(findRule(createRequests(tier).resize, facts), null, 'a tier that is not larger costs no more')
  const message = getMessage(createRequests('lite').create, facts) ?? ''
  for (const part of ['$13.00', '$12.34', '2026-03-01T00:00:00.000Z']) t.ok(message.includes(part), message)
  t.equal(
    findRule(createRequests('lite').create, createFacts({ memberSpendCapUsd: 0.01 })),
    null,
    'without billing, nothing is spent',
  )
})

t.test('autoPauseFloorMin: longer idle times and none', async (t) => {
  const cases: [minutes: number | null | undefined, isLonger: boolean][] = [
    [undefined, false],
    [30, false],
    [60, false],
    [61, true],
    [10_080, true],
    [null, true],
  ]
  for (const [autoPauseMin, isLonger] of cases)
    for (const role of ROLES) {
      const facts = createFacts({ autoPauseFloorMin: 60 }, { actor: ACTORS[role] })
      const { create } = createRequests('lite')
      const requests: AdmissionRequest[] = [
        { ...create, autoPauseMin } as AdmissionRequest,
        // The box has had a longer time since before the policy.
        { action: 'patch', box: box('lite', { auto_pause_min: 600 }), autoPauseMin },
      ]
      for (const request of requests) {
        const expected = isLonger && LIMITED.includes(role) ? 'autoPauseFloorMin' : null
        t.equal(findRule(request, facts), expected, `${role}: ${request.action} ${autoPauseMin}`)
      }
    }
  const machine: AdmissionRequest = {
    action: 'patch',
    box: box('lite', { kind: 'machine' }),
    autoPauseMin: null,
  }
  t.equal(findRule(machine, createFacts({ autoPauseFloorMin: 60 })), null, 'a machine has no idle time')
})

t.test('contractor_restricted: a contractor asks for a box that is not restricted', async (t) => {
  for (const role of ROLES)
    for (const restricted of [undefined, true, false]) {
      const request = { ...createRequests('lite').create, restricted } as AdmissionRequest
      const expected = role === 'contractor' && restricted === false ? 'contractor_restricted' : null
      t.equal(findRule(request, createFacts({}, { actor: ACTORS[role] })), expected, `${role}: ${restricted}`)
    }
})

t.test('allowedImages: every role', async (t) => {
  for (const actor of Object.values(ACTORS))
    for (const action of ['create', 'fork', 'restore', 'pull'] as const) {
      const request = { ...createRequests('lite')[action], imageNames: ['node:24'] } as AdmissionRequest
      t.equal(findRule(request, createFacts({ allowedImages: ['debian:*'] }, { actor })), 'allowedImages')
      t.equal(findRule(request, createFacts({ allowedImages: ['node:*'] }, { actor })), null)
    }
})

t.test('the order: closing, held, the policies, and of these what the request can correct', async (t) => {
  const policy: Partial<Policy> = {
    memberMaxTier: 'nano',
    memberBoxLimit: 1,
    memberSpendCapUsd: 1,
    autoPauseFloorMin: 30,
  }
  const closing = { closing_at: 1 } as WorkspaceRow
  const held = createBillingFacts({ hold: 'mining', spentThisCycleMicros: 1_000_000 })
  const request = { ...createRequests('lite').create, autoPauseMin: null } as AdmissionRequest
  const facts = createFacts(policy, { workspace: closing, billing: held, ownBoxes: 1 })
  t.match(decide(request, facts), { code: 'workspace_closing' })
  t.match(decide(request, { ...facts, workspace: createFacts({}).workspace }), { code: 'workspace_held' })
  const open = createFacts(policy, {
    billing: createBillingFacts({ spentThisCycleMicros: 1_000_000 }),
    ownBoxes: 1,
  })
  const rules: PolicyRule[] = []
  for (let changed = open; rules.length < 5; ) {
    const rule = findRule(request, changed)
    if (rule === null) break
    rules.push(rule)
    changed = { ...changed, policy: { ...changed.policy, [rule]: null } }
  }
  t.same(rules, ['memberMaxTier', 'autoPauseFloorMin', 'memberBoxLimit', 'memberSpendCapUsd'])
})

t.test('a held workspace changes settings only', async (t) => {
  for (const hold of ['mining', 'cpu'] as const) {
    const facts = createFacts({}, { actor: ACTORS.owner, billing: createBillingFacts({ hold }) })
    for (const action of ACTIONS) {
      const refusal = decide(createRequests('lite')[action], facts)
      const isAdmitted = action === 'patch' || action === 'give'
      t.equal(refusal?.code, isAdmitted ? undefined : 'workspace_held', action)
      t.equal(
        ADMISSION_ERRORS[action].some((code) => code === 'workspace_held'),
        refusal !== null,
        action,
      )
      if (refusal !== null) t.match(refusal.message, hold === 'cpu' ? /CPU/ : /mine/)
    }
  }
})

t.test('the defaults of a new box', async (t) => {
  for (const role of ROLES) {
    const isLimited = LIMITED.includes(role)
    const actor = ACTORS[role]
    const list = (policy: Partial<Policy>, isFreeCredit = false) => {
      const billing = createBillingFacts({ plan: isFreeCredit ? PLANS.free : PLANS.paid })
      return getDefaultAutoPause(createFacts(policy, { actor, billing }))
    }
    t.equal(list({}), null)
    t.equal(list({ autoPauseFloorMin: 90 }), isLimited ? 90 : null, role)
    t.equal(list({ autoPauseFloorMin: 600 }, true), 120, role)
    t.equal(list({ autoPauseFloorMin: 90 }, true), isLimited ? 90 : 120, role)
    const tiers = TIER_NAMES.map((memberMaxTier) => getDefaultTier(createFacts({ memberMaxTier }, { actor })))
    const expected = isLimited ? ['nano', 'micro'] : ['lite', 'lite']
    t.same(tiers, [...expected, 'lite', 'lite', 'lite', 'lite', 'lite'], role)
    t.equal(getDefaultTier(createFacts({}, { actor })), 'lite')
  }
})
