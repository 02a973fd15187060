// When each schedule of a box makes its change, and when it is evaluated again.
import t from 'tap'
import { newBoxRow } from '../../../../coordinator/boxes/create.ts'
import {
  type BoxScheduleKind,
  listFirstDueTimes,
} from '../../../../coordinator/boxes/lifecycle/update-schedules.ts'
import { type Decision, evaluate, type Facts } from '../../../../coordinator/boxes/schedules/evaluate.ts'
import type { BoxRow } from '../../../../coordinator/db/schema.ts'
import type { Actor } from '../../../../coordinator/http/actor.ts'
import { OBSERVED_STATES } from '../../../../shared/field-values.ts'

const MINUTE = 60_000
const HOUR = 60 * MINUTE
const DAY = 24 * HOUR
const NOW = 1000 * DAY

const created = newBoxRow({
  input: {},
  source: null,
  environment: null,
  actor: { workspaceId: 'w' } as Actor,
  ownerUserId: 'u',
  hostname: 'plum',
  machine: { region: 'us-west-2', provider: 'local', image: null, imageDigest: null },
  now: NOW - 100 * DAY,
} as Parameters<typeof newBoxRow>[0])

const running = (fields: Partial<BoxRow>): BoxRow => ({
  ...created,
  desired_state: 'running',
  observed_state: 'running',
  state_since: NOW - 10 * DAY,
  ...fields,
})
const suspended = (fields: Partial<BoxRow>): BoxRow =>
  running({ desired_state: 'suspended', observed_state: 'suspended', suspended_as: 'stopped', ...fields })

const decide = (kind: BoxScheduleKind, box: BoxRow, facts: Partial<Facts> = {}): Decision =>
  evaluate(kind, box, {
    settings: { freezeMs: HOUR, deepSleepMs: 14 * DAY },
    now: NOW,
    lastActiveAt: null,
    lastAutoSnapshotAt: null,
    isMemoryScarce: false,
    hasJob: false,
    ...facts,
  })
const SOON = { notBefore: NOW + MINUTE }

t.test('a deadline is due in every state, until it is cleared', async (t) => {
  t.equal(decide('pause', running({ pause_at: NOW })), 'act')
  t.same(decide('pause', running({ pause_at: NOW + 1 })), { notBefore: NOW + 1 })
  t.equal(decide('pause', running({ pause_at: null })), 'none')
  for (const observed_state of OBSERVED_STATES)
    t.equal(decide('pause', running({ pause_at: NOW, observed_state }), { hasJob: true }), 'act')
})

t.test('a deletion is due in every state, until it is removed', async (t) => {
  t.same(decide('delete', suspended({ delete_at: NOW + 1 })), { notBefore: NOW + 1 })
  t.equal(decide('delete', running({ delete_at: null })), 'none')
  for (const observed_state of OBSERVED_STATES)
    t.equal(decide('delete', running({ delete_at: NOW, observed_state }), { hasJob: true }), 'act')
})

t.test(
  'idle time counts from the last activity, and at the earliest from when the box became running',
  async (t) => {
    const box = running({ auto_pause_min: 30 })
    t.equal(decide('auto_pause', box, { lastActiveAt: NOW - 30 * MINUTE }), 'act')
    t.same(decide('auto_pause', box, { lastActiveAt: NOW - 30 * MINUTE + 1 }), { notBefore: NOW + 1 })
    t.equal(decide('auto_pause', box), 'act', 'the activity is unknown: the agent is asked')
    const woken = running({ auto_pause_min: 30, state_since: NOW - MINUTE })
    t.same(decide('auto_pause', woken, { lastActiveAt: NOW - DAY }), { notBefore: NOW + 29 * MINUTE })
    t.same(decide('auto_pause', woken), { notBefore: NOW + 29 * MINUTE })
  },
)

t.test('an idle box is not suspended while it is changed or not connected', async (t) => {
  const facts = { lastActiveAt: NOW - DAY }
  const box = running({ auto_pause_min: 30 })
  t.same(decide('auto_pause', box, { ...facts, hasJob: true }), SOON)
  t.same(decide('auto_pause', running({ auto_pause_min: 30, observed_state: 'degraded' }), facts), SOON)
  t.same(decide('auto_pause', running({ auto_pause_min: 30, desired_state: 'suspended' }), facts), SOON)
  t.equal(decide('auto_pause', running({ auto_pause_min: null }), facts), 'none')
})

t.test('an automatic snapshot is taken when the box is not in transition', async (t) => {
  const settings = { auto_snapshot_hours: 24 }
  for (const observed_state of ['running', 'degraded', 'suspended'] as const)
    t.equal(decide('auto_snapshot', running({ ...settings, observed_state })), 'act')
  t.same(decide('auto_snapshot', suspended({ ...settings, observed_state: 'deep_sleep' })), {
    notBefore: NOW + DAY,
  })
  t.same(decide('auto_snapshot', running({ ...settings, observed_state: 'resizing' })), SOON)
  t.equal(decide('auto_snapshot', running({ auto_snapshot_hours: null })), 'none')
})

t.test('a suspended box gets an automatic snapshot only if it has run since its last one', async (t) => {
  const box = suspended({ auto_snapshot_hours: 24, state_since: NOW - HOUR })
  t.equal(decide('auto_snapshot', box, { lastAutoSnapshotAt: NOW - 2 * HOUR }), 'act')
  t.same(decide('auto_snapshot', box, { lastAutoSnapshotAt: NOW - HOUR + 1 }), { notBefore: NOW + DAY })
  const again = running({ auto_snapshot_hours: 24 })
  t.equal(decide('auto_snapshot', again, { lastAutoSnapshotAt: NOW - DAY }), 'act')
})

t.test('a frozen box is stopped after its time, or when the memory is scarce', async (t) => {
  const frozen = (fields: Partial<BoxRow> = {}) => suspended({ suspended_as: 'frozen', ...fields })
  t.equal(decide('stop_frozen', frozen({ state_since: NOW - HOUR })), 'act')
  t.same(decide('stop_frozen', frozen({ state_since: NOW - HOUR + 1 })), { notBefore: NOW + 1 })
  t.equal(decide('stop_frozen', frozen({ state_since: NOW - 1 }), { isMemoryScarce: true }), 'act')
  t.equal(decide('stop_frozen', suspended({})), 'none')
  t.equal(decide('stop_frozen', frozen({ observed_state: 'waking' })), 'none')
  t.same(
    decide('stop_frozen', frozen({ desired_state: 'running' }), { isMemoryScarce: true }),
    SOON,
    'it is woken',
  )
  t.same(decide('stop_frozen', frozen(), { hasJob: true }), SOON)
})

t.test('a box sleeps deeply when it has been suspended for the configured days', async (t) => {
  t.equal(decide('deep_sleep', suspended({ state_since: NOW - 14 * DAY })), 'act')
  t.equal(decide('deep_sleep', suspended({ state_since: NOW - 14 * DAY, suspended_as: 'frozen' })), 'act')
  t.same(decide('deep_sleep', suspended({ state_since: NOW - 14 * DAY + 1 })), { notBefore: NOW + 1 })
  t.equal(decide('deep_sleep', running({})), 'none')
  const old = { state_since: NOW - 20 * DAY }
  t.same(decide('deep_sleep', suspended({ ...old, desired_state: 'running' })), SOON)
  t.same(decide('deep_sleep', suspended(old), { hasJob: true }), SOON)
})

t.test('a box that is being deleted has no schedules', async (t) => {
  for (const kind of ['pause', 'delete', 'auto_pause', 'auto_snapshot', 'stop_frozen', 'deep_sleep'] as const)
    t.equal(
      decide(
        kind,
        suspended({ desired_state: 'terminated', pause_at: 0, delete_at: 0, auto_snapshot_hours: 1 }),
      ),
      'none',
    )
  const settings = { pause_at: NOW, auto_pause_min: 30, auto_snapshot_hours: 1 }
  for (const observed_state of ['terminating', 'terminated', 'provision_failed'] as const)
    t.same(listFirstDueTimes(running({ ...settings, observed_state }), NOW), {})
})

t.test('a box has the schedules of its state and its settings', async (t) => {
  const settings = { pause_at: NOW + 1, auto_pause_min: 30, auto_snapshot_hours: 2 }
  t.same(listFirstDueTimes(running({}), NOW), {})
  t.same(listFirstDueTimes(running(settings), NOW), {
    pause: NOW + 1,
    auto_pause: NOW + 30 * MINUTE,
    auto_snapshot: NOW + 2 * HOUR,
  })
  t.same(listFirstDueTimes(suspended({ ...settings, suspended_as: 'frozen' }), NOW), {
    pause: NOW + 1,
    auto_snapshot: NOW + 2 * HOUR,
    stop_frozen: 'soon',
    deep_sleep: 'soon',
  })
  t.same(listFirstDueTimes(suspended({}), NOW), { deep_sleep: 'soon' })
})
