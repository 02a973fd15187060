// When a balance is low or empty, what a box costs in each of its states, and what the plans have.
import t from 'tap'
import { CHARGE_DELAY_MS, evaluateBalance } from '../../../coordinator/billing/evaluate.ts'
import { modeOf } from '../../../coordinator/billing/meter.ts'
import { PLANS } from '../../../coordinator/billing/plans.ts'
import { planOf } from '../../../coordinator/billing/service.ts'
import type { MeterMode } from '../../../coordinator/billing/store/tables.ts'
import type { DesiredState, ObservedState } from '../../../shared/api/boxes.ts'
import { OBSERVED_STATES } from '../../../shared/field-values.ts'

const HOUR_MS = 3_600_000
const NOW = Date.UTC(2030, 0, 1, 12, 30)
const NEXT_HOUR = Date.UTC(2030, 0, 1, 13) + CHARGE_DELAY_MS + 1000

t.test('a balance', async (t) => {
  const evaluate = (
    balanceMicros: number,
    burnMicrosPerHour: number,
    card: { overdraftMicros: number } | null = null,
  ) => evaluateBalance({ balanceMicros, burnMicrosPerHour }, { now: NOW, warnBelowHours: 24, card })
  t.match(evaluate(24_000, 1000), { isLow: false, isEmpty: false, nextAt: NOW + 1000 }, 'low in a moment')
  t.match(evaluate(23_999, 1000), { isLow: true, isEmpty: false })
  t.match(evaluate(1, 0), { isLow: false, isEmpty: false, nextAt: NEXT_HOUR - 1000 }, 'nothing is used')
  t.match(evaluate(0, 0), { isLow: true, isEmpty: true })
  t.match(evaluate(-5, 1000), { isLow: true, isEmpty: true, nextAt: NEXT_HOUR - 1000 })
  t.equal(evaluate(24_100, 1000).nextAt, NOW + HOUR_MS / 10 + 1000, 'when it becomes low')
  t.equal(evaluate(250, 1000).nextAt, NOW + HOUR_MS / 4 + 1000, 'when it becomes empty')
  t.equal(evaluate(1_000_000, 1000).nextAt, NEXT_HOUR, 'the next charge')

  const card = { overdraftMicros: 2000 }
  t.match(evaluate(-5, 1000, card), { isLow: false, isEmpty: false, nextAt: NEXT_HOUR })
  t.match(evaluate(-1999, 1000, card), { isEmpty: false, nextAt: NOW + HOUR_MS / 1000 + 1000 })
  t.match(evaluate(-2000, 1000, card), { isLow: false, isEmpty: true, nextAt: NEXT_HOUR - 1000 })
  t.match(evaluate(0, 1000, { overdraftMicros: 0 }), { isLow: false, isEmpty: true }, 'not trusted yet')
  for (const balance of [-1, 1, 23_999, 24_000, 1_000_000])
    t.ok(evaluate(balance, 1000, card).nextAt > NOW, `${balance}: not evaluated again at once`)
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
