// When a balance is low or empty, what a box costs in each of its states, and what the plans have.
import t from 'tap'
import { CHARGE_DELAY_MS, evaluateBalance } from '../../../coordinator/billing/evaluate.ts'
import { modeOf } from '../../../coordinator/billing/meter.ts'
import { PLANS } from '../../../coordinator/billing/plans.ts'
import { hasWorkingCard, mayRunOn, planOf } from '../../../coordinator/billing/service.ts'
import type { BillingAccountRow, MeterMode } from '../../../coordinator/billing/store/tables.ts'
import type { DesiredState, ObservedState } from '../../../shared/api/boxes.ts'
import { OBSERVED_STATES } from '../../../shared/field-values.ts'

const HOUR_MS = 3_600_000
const NOW = Date.UTC(2030, 0, 1, 12, 30)
const NEXT_HOUR = Date.UTC(2030, 0, 1, 13) + CHARGE_DELAY_MS + 1000

const ACCOUNT: BillingAccountRow = {
  workspace_id: 'ws',
  balance_micros: 0,
  charged_until: 0,
  paid_at: null,
  hold: null,
  flagged_at: null,
  warned_at: null,
  emptied_at: null,
  customer_id: null,
  payment_method_id: null,
  collecting_since: null,
  payment_failed_at: null,
  payment_failure: null,
  payment_grace_until: null,
  created_at: 0,
}

t.test('a balance', async (t) => {
  const evaluate = (balanceMicros: number, burnMicrosPerHour: number, isPaidByCard = false) =>
    evaluateBalance({ balanceMicros, burnMicrosPerHour }, { now: NOW, warnBelowHours: 24, isPaidByCard })
  t.match(evaluate(24_000, 1000), { isLow: false, isEmpty: false, nextAt: NOW + 1000 }, 'low in a moment')
  t.match(evaluate(23_999, 1000), { isLow: true, isEmpty: false })
  t.match(evaluate(1, 0), { isLow: false, isEmpty: false, nextAt: NEXT_HOUR - 1000 }, 'nothing is used')
  t.match(evaluate(0, 0), { isLow: true, isEmpty: true })
  t.match(evaluate(-5, 1000), { isLow: true, isEmpty: true, nextAt: NEXT_HOUR - 1000 })
  t.equal(evaluate(24_100, 1000).nextAt, NOW + HOUR_MS / 10 + 1000, 'when it becomes low')
  t.equal(evaluate(250, 1000).nextAt, NOW + HOUR_MS / 4 + 1000, 'when it becomes empty')
  t.equal(evaluate(1_000_000, 1000).nextAt, NEXT_HOUR, 'the next charge')
  t.match(evaluate(-5, 1000, true), { isLow: false, isEmpty: false }, 'a card pays')
})

t.test('a saved card pays beyond the balance until a payment fails', async (t) => {
  const card = { ...ACCOUNT, payment_method_id: 'pm' }
  const failed = { ...card, payment_failed_at: NOW - 1, payment_grace_until: NOW + 1 }
  const describe = (account: BillingAccountRow, now = NOW) => ({
    mayStart: hasWorkingCard(account),
    mayRunOn: mayRunOn(account, now),
  })
  t.same(describe(ACCOUNT), { mayStart: false, mayRunOn: false })
  t.same(describe(card), { mayStart: true, mayRunOn: true })
  t.same(describe(failed), { mayStart: false, mayRunOn: true })
  t.same(describe(failed, NOW + 1), { mayStart: false, mayRunOn: false }, 'the grace has ended')
  t.same(describe({ ...failed, payment_method_id: null }), { mayStart: false, mayRunOn: false })
})

t.test('what each state of a box costs', async (t) => {
  const modes: Record<ObservedState, Record<DesiredState, MeterMode>> = {
    requested: { running: 'launching', suspended: 'ended', terminated: 'ended' },
    provisioning: { running: 'launching', suspended: 'ended', terminated: 'ended' },
    bootstrapping: { running: 'launching', suspended: 'ended', terminated: 'ended' },
    running: { running: 'compute', suspended: 'compute', terminated: 'compute' },
    degraded: { running: 'compute', suspended: 'compute', terminated: 'compute' },
    resizing: { running: 'compute', suspended: 'compute', terminated: 'compute' },
    suspending: { running: 'compute', suspended: 'compute', terminated: 'compute' },
    migrating: { running: 'compute', suspended: 'disk', terminated: 'disk' },
    waking: { running: 'waking', suspended: 'waking', terminated: 'waking' },
    suspended: { running: 'waking', suspended: 'disk', terminated: 'disk' },
    deep_sleep: { running: 'waking', suspended: 'disk', terminated: 'disk' },
    provision_failed: { running: 'ended', suspended: 'ended', terminated: 'ended' },
    terminating: { running: 'ended', suspended: 'ended', terminated: 'ended' },
    terminated: { running: 'ended', suspended: 'ended', terminated: 'ended' },
  }
  for (const observed of OBSERVED_STATES)
    for (const desired of ['running', 'suspended', 'terminated'] as const)
      t.equal(modeOf(observed, desired), modes[observed][desired], `${observed}, to be ${desired}`)
})

t.test('the plan of a workspace', async (t) => {
  t.equal(planOf({ paid_at: null }), PLANS.free)
  t.equal(planOf({ paid_at: 1 }), PLANS.paid)
  t.match(PLANS.free, { boxes: 1, tiers: ['nano', 'micro', 'lite', 'flow'], defaultAutoPauseMin: 120 })
  for (const field of ['boxes', 'snapshots', 'secrets', 'terminals'] as const)
    t.ok(PLANS.free[field] < PLANS.paid[field], field)
})
