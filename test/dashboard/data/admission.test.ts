// The dashboard says that a request will be refused exactly where the coordinator refuses it, with what a user can read.
import t from 'tap'
import type { BillingFacts } from '../../../coordinator/admission/billing-facts.ts'
import { decide } from '../../../coordinator/admission/decide.ts'
import type { AdmissionFacts } from '../../../coordinator/admission/facts.ts'
import { hasWorkingCard } from '../../../coordinator/billing/overdraft.ts'
import { PLANS } from '../../../coordinator/billing/plans.ts'
import type { BoxRow } from '../../../coordinator/db/schema.ts'
import {
  type AdmissionRequest,
  type AdmissionRules,
  explainRefusal,
  matchesImages,
  refuseTier,
} from '../../../dashboard/data/admission.ts'
import type { Box } from '../../../shared/api/boxes.ts'
import type { RegionInfo } from '../../../shared/api/images.ts'
import { DEFAULT_POLICY, type Policy } from '../../../shared/api/policies.ts'
import { TIER_NAMES, type Tier } from '../../../shared/tiers.ts'
import { createBillingFacts, type FactChanges } from '../../support/billing-facts.ts'

const RULES: AdmissionRules = {
  userId: 'usr_1',
  regions: [{ region: 'us-west-2', snapshots: true }] as RegionInfo[],
  closingAt: null,
  allowedImages: null,
  memberLimits: null,
  spentMicros: 0,
  billing: null,
}

/** What an owner reads of the facts. */
function presentBilling({ plan, funds, isFreeCredit }: BillingFacts): AdmissionRules['billing'] {
  if (funds === null) throw new Error('there are no funds')
  const { rates, balanceMicros, overdraftMicros, burnMicrosPerHour } = funds
  const tiers = TIER_NAMES.map((tier) => ({
    tier,
    runningMicrosPerHour: rates.compute(tier),
    diskMicrosPerHour: rates.disk(tier),
  }))
  return {
    ...{ balanceMicros, overdraftMicros, burnMicrosPerHour, paymentFailed: false },
    plan: {
      ...{ boxes: plan.boxes, tiers: [...plan.tiers], name: isFreeCredit ? 'free' : 'paid' },
      ...{ snapshots: 0, secrets: 0, terminals: 0 },
    },
    prices: { tiers, snapshotGbMicrosPerHour: 0 },
  }
}

const createFacts = (role: 'owner' | 'member', changes: Partial<AdmissionFacts> = {}): AdmissionFacts => ({
  actor: { role, userId: 'usr_1' } as AdmissionFacts['actor'],
  workspace: { closing_at: null } as AdmissionFacts['workspace'],
  policy: DEFAULT_POLICY,
  ...{ ownBoxes: null, billing: null, now: 0 },
  ...changes,
})

const createBoxes = (count: number): Box[] =>
  Array.from({ length: count }, () => ({ ownerUserId: 'usr_1', desiredState: 'running' }) as Box)

t.test('billing, of an owner', async (t) => {
  const cases: FactChanges[] = [
    {},
    { isFreeCredit: true, plan: PLANS.free },
    { isFreeCredit: true, plan: PLANS.free, liveBoxes: 1 },
    { liveBoxes: PLANS.paid.boxes },
    { balanceMicros: 1_000_000 },
    { balanceMicros: 1_000_000, burnMicrosPerHour: 200_000 },
    { balanceMicros: 0 },
    { balanceMicros: -5, overdraftMicros: 100_000_000 },
    { balanceMicros: 1_000_000, overdraftMicros: 1_000_000 },
  ]
  const refusals = new Set<string>()
  for (const changes of cases) {
    const billing = createBillingFacts(changes)
    const facts = createFacts('owner', { billing })
    const rules = { ...RULES, billing: presentBilling(billing) }
    const boxes = createBoxes(changes.liveBoxes ?? 0)
    for (const tier of TIER_NAMES) {
      const created = decide({ action: 'restore', tier, imageNames: [] }, facts)
      const explained = explainRefusal({ tier }, rules, boxes)
      t.equal(explained !== null, created !== null, `create ${tier} ${JSON.stringify(changes)}: ${explained}`)
      for (const desiredState of ['running', 'suspended'] as const)
        for (const old of ['micro', 'pro'] as const) {
          const box = { tier: old, desired_state: desiredState } as BoxRow
          const resized = old === tier ? null : decide({ action: 'resize', box, tier }, facts)
          const request: AdmissionRequest = { resized: { tier: old, desiredState }, tier }
          if (old !== tier)
            t.equal(explainRefusal(request, rules, boxes) !== null, resized !== null, `${old} to ${tier}`)
          refusals.add(`${created?.code} ${resized?.code}`)
        }
    }
  }
  t.ok(refusals.size > 4, 'the cases differ')
})

t.test('a card whose last payment has failed starts no box beyond the balance', async (t) => {
  for (const failedAt of [null, 1]) {
    const isWorking = hasWorkingCard({ payment_method_id: 'pm_1', payment_failed_at: failedAt })
    const overdraftMicros = 25_000_000
    const billing = createBillingFacts({
      balanceMicros: 0,
      overdraftMicros: isWorking ? overdraftMicros : 0,
    })
    const presented = presentBilling(billing)
    const rules = {
      ...RULES,
      billing: presented && { ...presented, overdraftMicros, paymentFailed: failedAt !== null },
    }
    const created = decide(
      { action: 'restore', tier: 'nano', imageNames: [] },
      createFacts('owner', { billing }),
    )
    t.equal(created !== null, failedAt !== null)
    t.equal(explainRefusal({ tier: 'nano' }, rules, []) !== null, created !== null)
  }
})

t.test('the policies that limit members', async (t) => {
  const cases: { policy: Partial<Policy>; ownBoxes?: number; spentMicros?: number }[] = [
    { policy: { memberMaxTier: 'lite' } },
    { policy: { memberBoxLimit: 2 }, ownBoxes: 1 },
    { policy: { memberBoxLimit: 2 }, ownBoxes: 2 },
    { policy: { memberSpendCapUsd: 5 }, spentMicros: 4_999_999 },
    { policy: { memberSpendCapUsd: 5 }, spentMicros: 5_000_000 },
  ]
  for (const { policy: changes, ownBoxes = 0, spentMicros = 0 } of cases) {
    const policy = { ...DEFAULT_POLICY, ...changes }
    const billing = createBillingFacts({ spentThisCycleMicros: spentMicros })
    const facts = createFacts('member', { policy, billing, ownBoxes })
    const rules = { ...RULES, memberLimits: policy, spentMicros }
    for (const tier of TIER_NAMES) {
      const created = decide({ action: 'restore', tier, imageNames: [] }, facts)
      t.equal(explainRefusal({ tier }, rules, createBoxes(ownBoxes)) !== null, created !== null, tier)
      const box = { tier: 'micro', desired_state: 'running' } as BoxRow
      const resized = tier === 'micro' ? null : decide({ action: 'resize', box, tier }, facts)
      const request: AdmissionRequest = { resized: { tier: 'micro', desiredState: 'running' }, tier }
      if (tier !== 'micro')
        t.equal(
          explainRefusal(request, rules, createBoxes(ownBoxes)) !== null,
          resized !== null,
          `to ${tier}`,
        )
    }
  }
})

t.test('files, regions, images and a closing workspace', async (t) => {
  const explain = (request: Partial<AdmissionRequest>, rules: Partial<AdmissionRules> = {}) =>
    explainRefusal({ tier: 'nano', ...request }, { ...RULES, ...rules }, [])
  t.equal(explain({}), null)
  t.match(explain({ sizeGb: 10.5 }), 'The files need 9.78 GiB, and the disk of the tier nano has 10 GB.')
  t.equal(explain({ sizeGb: 10 }), null)
  t.match(explain({ region: 'eu-central-1' }), 'creates no boxes')
  t.equal(explain({ region: 'us-west-2' }), null)
  t.match(explain({ image: 'debian:12' }, { allowedImages: ['alpine:*'] }), 'debian:12')
  t.equal(explain({ image: null }, { allowedImages: [] }), null)
  const closingAt = '2026-01-01T00:00:00.000Z'
  t.match(explain({}, { closingAt }), /no box can be created/)
  t.match(explain({ resized: { tier: 'pro', desiredState: 'running' } }, { closingAt }), /resized/)
  t.same(
    [null, [], ['debian:*'], ['*.example.com/*']].map((allowed) => matchesImages('debian:12', allowed)),
    [true, false, true, false],
  )
  t.equal(matchesImages('', []), true)
})

t.test('the label of a tier names the reason', async (t) => {
  const label = (tier: Tier, rules: Partial<AdmissionRules>, request: Partial<AdmissionRequest> = {}) =>
    refuseTier(tier, { tier, ...request }, { ...RULES, ...rules })?.label
  const memberLimits = { ...DEFAULT_POLICY, memberMaxTier: 'lite' } as const
  t.match(label('pro', { memberLimits }), 'memberMaxTier')
  t.equal(label('lite', { memberLimits }), undefined)
  const free = createBillingFacts({ isFreeCredit: true, plan: PLANS.free, balanceMicros: 1 })
  t.match(label('pro', { billing: presentBilling(free) }), 'free credit')
  t.match(label('lite', { billing: presentBilling(free) }), 'balance')
  t.match(label('nano', {}, { sizeGb: 11 }), 'disk')
})
