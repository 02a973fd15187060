// The decisions of billing on requests: pure functions of the balance, the plan and the request.
import t from 'tap'
import { decideBilling, decideHold } from '../../../coordinator/admission/decide-billing.ts'
import { getDefaultTier } from '../../../coordinator/admission/default-tier.ts'
import type { AdmissionFacts } from '../../../coordinator/admission/facts.ts'
import type { AdmissionRequest } from '../../../coordinator/admission/request.ts'
import { PLANS } from '../../../coordinator/billing/plans.ts'
import type { BoxRow } from '../../../coordinator/db/schema.ts'
import { DEFAULT_POLICY } from '../../../shared/api/policies.ts'
import type { Tier } from '../../../shared/tiers.ts'
import { createBillingFacts, type FactChanges } from '../../support/billing-facts.ts'

const PAID: FactChanges = { balanceMicros: 1_000_000, billingUrl: 'https://example.com/billing' }

const facts = (billing: FactChanges | null) =>
  ({
    policy: DEFAULT_POLICY,
    billing: billing === null ? null : createBillingFacts({ ...PAID, ...billing }),
  }) as AdmissionFacts
const decide = (request: AdmissionRequest, billing: FactChanges | null) =>
  decideBilling(request, facts(billing))
const create = (tier: Tier): AdmissionRequest => ({
  action: 'create',
  tier,
  autoPauseMin: undefined,
  restricted: undefined,
  imageNames: [],
})
const box = (tier: Tier, desired_state: BoxRow['desired_state']) => ({ tier, desired_state }) as BoxRow

t.test('a start needs a balance for four hours', async (t) => {
  const starting = { burnMicrosPerHour: 3000, reservedMicrosPerHour: 7000 }
  t.equal(decide(create('nano'), { ...starting, balanceMicros: 80_000 }), null)
  t.match(decide(create('nano'), { ...starting, balanceMicros: 79_999 }), {
    code: 'insufficient_balance',
    balanceMicros: 79_999,
    requiredMicros: 80_000,
    burnMicrosPerHour: 20_000,
    admissionMicrosPerHour: 20_000,
  })
  t.equal(decide(create('nano'), null), null)
})

t.test('a saved card counts for as much as it is trusted with', async (t) => {
  const card = { balanceMicros: 25_000_000, overdraftMicros: 25_000_000 }
  const others = (ultras: number) => ({ ...card, burnMicrosPerHour: ultras * 640_000 })
  t.equal(decide(create('ultra'), others(18)), null, '19 boxes cost $48.64 in four hours')
  t.match(decide(create('ultra'), others(19)), {
    code: 'insufficient_balance',
    balanceMicros: 25_000_000,
    requiredMicros: 51_200_000,
    message: /it is \$25\.00, the saved card counts for \$25\.00, and \$51\.20 are required\./,
  })
  t.equal(decide(create('nano'), { balanceMicros: -1, overdraftMicros: 40_001 }), null)
  t.match(decide(create('nano'), { balanceMicros: -1, overdraftMicros: 40_000 }), {
    code: 'insufficient_balance',
  })
  const wake: AdmissionRequest = { action: 'wake', box: box('nano', 'suspended') }
  const inDebt = { balanceMicros: -24_990_000, overdraftMicros: 25_000_000 }
  t.match(decide(wake, inDebt), { code: 'wake_rejected', cause: 'balance_empty' })
})

t.test('a wake', async (t) => {
  const wake: AdmissionRequest = { action: 'wake', box: box('nano', 'suspended') }
  const required = 4 * (1370 + 10_000 - 1370)
  t.equal(
    decide(wake, { burnMicrosPerHour: 1370, balanceMicros: required }),
    null,
    'its disk is paid already',
  )
  const low = decide(wake, { burnMicrosPerHour: 1370, balanceMicros: required - 1 })
  t.match(low, { code: 'wake_rejected', cause: 'balance_low' })
  t.notOk(low !== null && 'billingUrl' in low)
  t.match(decide(wake, { balanceMicros: 0 }), {
    cause: 'balance_empty',
    billingUrl: 'https://example.com/billing',
    reason: /^The balance must last for 4 hours with all boxes: it is \$0\.00, and \$0\.03 are required\.$/,
  })
  const manual = decide(wake, { balanceMicros: 0, billingUrl: null })
  t.notOk(manual !== null && 'billingUrl' in manual, 'an operator grants credit')
})

t.test('a resize adds the difference of the prices', async (t) => {
  const resize = (state: 'running' | 'suspended', to: Tier, balanceMicros: number) =>
    decide(
      { action: 'resize', box: box('micro', state), tier: to },
      { burnMicrosPerHour: 20_000, balanceMicros },
    )
  t.equal(resize('running', 'lite', 160_000), null)
  t.match(resize('running', 'lite', 159_999), { code: 'insufficient_balance', requiredMicros: 160_000 })
  t.equal(resize('running', 'nano', -1), null, 'a smaller tier costs less')
  t.equal(resize('suspended', 'lite', 4 * (20_000 + 2740)), null)
  t.match(resize('suspended', 'lite', 4 * (20_000 + 2740) - 1), { code: 'insufficient_balance' })
})

t.test('the plan', async (t) => {
  const free = { plan: PLANS.free, isFreeCredit: true, liveBoxes: 0 }
  t.match(decide(create('max'), free), {
    code: 'tier_unavailable',
    allowed: ['nano', 'micro', 'lite', 'flow'],
  })
  t.equal(decide(create('flow'), free), null)
  t.match(
    decide(create('max'), { ...free, liveBoxes: 1 }),
    { code: 'box_limit', limit: 1 },
    'the count comes first',
  )
  t.match(decide({ action: 'enroll', tier: null }, { ...free, liveBoxes: 1 }), { code: 'box_limit' })
  t.match(decide(create('nano'), { liveBoxes: 1000 }), {
    code: 'box_limit',
    limit: 1000,
    message: 'The plan of the workspace has 1000 boxes. Delete a box first.',
  })
  t.match(decide({ action: 'restore', tier: 'max', imageNames: [] }, free), {
    code: 'restore_tier_not_allowed',
  })
  for (const access of ['members', 'anyone', 'public'] as const) {
    t.equal(decide({ action: 'share', access }, {}), null)
    t.equal(decide({ action: 'share', access }, free) === null, access === 'members', access)
  }
})

t.test('a held workspace can change settings only', async (t) => {
  const hold = (request: AdmissionRequest) => decideHold(request, facts({ hold: 'mining' }))
  const row = box('nano', 'suspended')
  t.match(hold({ action: 'snapshot', box: row }), { code: 'workspace_held', message: /mine cryptocurrency/ })
  t.equal(hold({ action: 'patch', box: row, autoPauseMin: undefined }), null)
  t.equal(decideHold(create('nano'), facts({})), null)
})

t.test('the tier of a box whose request names none', async (t) => {
  const choose = (billing: FactChanges | null) => getDefaultTier(facts(billing))
  t.equal(choose(null), 'lite')
  t.equal(choose({ balanceMicros: 24 * 40_000 }), 'lite')
  t.equal(choose({ balanceMicros: 24 * 40_000 - 1 }), 'micro')
  t.equal(choose({ balanceMicros: 24 * 40_000, reservedMicrosPerHour: 1 }), 'micro', 'with the other boxes')
  t.equal(choose({ balanceMicros: 0 }), 'nano')
  t.equal(choose({ balanceMicros: 0, overdraftMicros: 24 * 40_000 }), 'lite')
  t.equal(choose({ balanceMicros: 0, overdraftMicros: 24 * 40_000 - 1 }), 'micro')
  t.equal(choose({ plan: PLANS.free, balanceMicros: 5_000_000 }), 'micro')
})
