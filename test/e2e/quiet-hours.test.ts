// Quiet hours over HTTP: what the start of a period suspends, what it leaves alone, and starts that were missed.
import t, { type Test } from 'tap'
import type { QuietHours } from '../../shared/api/policies.ts'
import { WEEKDAYS } from '../../shared/field-values.ts'
import { startTestCoordinator } from '../support/coordinator.ts'
import { FakeInfrastructure } from '../support/fake-infrastructure.ts'
import { createTestSession } from '../support/session.ts'
import { waitUntil } from '../support/wait-until.ts'
import { createTestClock, type TestClock } from '../support/workspace.ts'
import { createRunningBox } from './snapshots-support.ts'

const MINUTE_MS = 60_000
const HOUR_MS = 60 * MINUTE_MS

/** 2030-01-01 is a Tuesday. */
const NOON = Date.UTC(2030, 0, 1, 12)
const NIGHT: QuietHours = {
  start: '22:00',
  end: '07:00',
  days: [...WEEKDAYS],
  allDayDays: [],
  timezone: 'UTC',
}

type Options = { clock?: TestClock; infra?: FakeInfrastructure; dataDir?: string }

async function start(t: Test, options: Options = {}) {
  const { clock = createTestClock(NOON), infra = new FakeInfrastructure(), dataDir } = options
  const coordinator = await startTestCoordinator(t, {
    clock,
    infra,
    ...(dataDir !== undefined && { dataDir }),
  })
  const { api, instance } = coordinator
  const { db, scheduler } = instance.context

  const findDueTime = async (): Promise<number | undefined> => {
    const query = db.selectFrom('schedules').select('due_at').where('kind', '=', 'quiet_hours')
    return (await query.executeTakeFirst())?.due_at
  }
  const waitForDueTime = (time: number | undefined) =>
    waitUntil('the next start is scheduled', async () => (await findDueTime()) === time)

  return {
    ...{ ...coordinator, clock, infra, findDueTime, waitForDueTime },
    async setQuietHours(quietHours: QuietHours | null): Promise<void> {
      const session = await createTestSession(coordinator)
      const { status } = await api('PATCH', '/workspace/policies', { quietHours }, session)
      if (status !== 200) throw new Error(`PATCH /workspace/policies responded with ${status}`)
    },
    advanceTo(time: number) {
      clock.advance(time - clock.now())
      scheduler.runDue()
    },
    async getDesiredState(id: string): Promise<string> {
      return (await api('GET', `/boxes/${id}`)).json.box.desiredState
    },
    async listReasons(id: string): Promise<string[]> {
      const { events } = (await api('GET', `/boxes/${id}`)).json
      return events
        .filter(({ toState }: { toState: string }) => toState === 'suspending')
        .map(({ reason }: { reason: string }) => reason)
    },
  }
}

type Started = Awaited<ReturnType<typeof start>>

async function wake({ api, waitForState }: Started, id: string): Promise<void> {
  await api('POST', `/boxes/${id}/wake`)
  await waitForState(id, 'running')
}

const FIRST_START = NOON + 10 * HOUR_MS
const DAY_MS = 24 * HOUR_MS

t.test('the start of a period suspends the running boxes once', async (t) => {
  const started = await start(t)
  const { api, advanceTo, waitForDueTime, waitForState, getDesiredState, setQuietHours, instance } = started
  const fig = await createRunningBox(started, { name: 'fig' })
  const exempt = await createRunningBox(started, { name: 'plum' })
  t.equal((await api('PATCH', `/boxes/${exempt}`, { quietHoursExempt: true })).status, 200)
  const machine = await createRunningBox(started, { name: 'laptop' })
  await instance.context.db.updateTable('boxes').set({ kind: 'machine' }).where('id', '=', machine).execute()

  await setQuietHours(NIGHT)
  await waitForDueTime(FIRST_START)
  advanceTo(FIRST_START - 1)
  t.equal(await getDesiredState(fig), 'running')
  advanceTo(FIRST_START)
  await waitForDueTime(FIRST_START + DAY_MS)
  await waitForState(fig, 'suspended')
  t.same(await started.listReasons(fig), ['quiet hours'])
  t.equal(await getDesiredState(exempt), 'running')
  t.equal(await getDesiredState(machine), 'running')
  const { events } = (await api('GET', `/audit?kind=box.suspend&box=${fig}`)).json
  t.match(events, [{ boxId: fig, actorKind: 'system', detail: { name: 'fig', reason: 'quiet hours' } }])

  await t.test('a box that is woken or created afterwards stays awake until the next start', async (t) => {
    await wake(started, fig)
    const cherry = await createRunningBox(started, { name: 'cherry' })
    advanceTo(FIRST_START + 5 * HOUR_MS)
    t.same([await getDesiredState(fig), await getDesiredState(cherry)], ['running', 'running'])
    advanceTo(FIRST_START + DAY_MS)
    await waitForDueTime(FIRST_START + 2 * DAY_MS)
    for (const id of [fig, cherry]) await waitForState(id, 'suspended')
  })

  await t.test('a change of the policy applies from the next start, and null from now on', async (t) => {
    await wake(started, fig)
    await setQuietHours({ ...NIGHT, start: '21:00' })
    await waitForDueTime(FIRST_START + 2 * DAY_MS - HOUR_MS)
    t.equal(await getDesiredState(fig), 'running', 'the hours are quiet already')
    await setQuietHours(null)
    await waitForDueTime(undefined)
    advanceTo(FIRST_START + 3 * DAY_MS)
    t.equal(await getDesiredState(fig), 'running')
  })
})

t.test('a start that was missed is handled late, unless the period has ended', async (t) => {
  const first = await start(t)
  const { clock, infra, dataDir } = first
  const fig = await createRunningBox(first, { name: 'fig' })
  await first.setQuietHours(NIGHT)
  await first.waitForDueTime(FIRST_START)
  // As Ctrl-C does: the next coordinator wakes the box again, which is no wake by a user.
  await first.instance.suspendBoxes('stopped')
  await first.close()
  clock.advance(FIRST_START + HOUR_MS - clock.now())

  const second = await start(t, { clock, infra, dataDir })
  await second.waitForDueTime(FIRST_START + DAY_MS)
  await waitUntil('the box is suspended', async () => (await second.getDesiredState(fig)) === 'suspended')
  await second.waitForState(fig, 'suspended')
  await wake(second, fig)
  await second.close()
  clock.advance(FIRST_START + DAY_MS + 9 * HOUR_MS - clock.now())

  const third = await start(t, { clock, infra, dataDir })
  await third.waitForDueTime(FIRST_START + 2 * DAY_MS)
  t.equal(await third.getDesiredState(fig), 'running')
})

t.test('a late start leaves boxes alone that users have started since', async (t) => {
  const started = await start(t)
  const { instance, clock, waitForDueTime, getDesiredState, waitForState, advanceTo } = started
  const { db } = instance.context
  const [fig, plum] = [
    await createRunningBox(started, { name: 'fig' }),
    await createRunningBox(started, { name: 'plum' }),
  ]
  await started.setQuietHours(NIGHT)
  await waitForDueTime(FIRST_START)
  // The scheduler does not run, as if the coordinator were busy.
  await db.deleteFrom('schedules').where('kind', '=', 'quiet_hours').execute()
  clock.advance(FIRST_START + MINUTE_MS - clock.now())
  await started.api('POST', `/boxes/${fig}/suspend`)
  await waitForState(fig, 'suspended')
  await wake(started, fig)
  const cherry = await createRunningBox(started, { name: 'cherry' })
  const workspace_id = instance.owner?.workspaceId ?? ''
  const schedule = { kind: 'quiet_hours', target_id: workspace_id, due_at: FIRST_START }
  await db.insertInto('schedules').values(schedule).execute()
  advanceTo(FIRST_START + 2 * MINUTE_MS)
  await waitForDueTime(FIRST_START + DAY_MS)
  await waitForState(plum, 'suspended')
  t.same([await getDesiredState(fig), await getDesiredState(cherry)], ['running', 'running'])
})

t.test('a policy without a schedule gets one at the start of the coordinator', async (t) => {
  const first = await start(t)
  const { clock, infra, dataDir, instance } = first
  await first.setQuietHours(NIGHT)
  await first.waitForDueTime(FIRST_START)
  const { db } = instance.context
  // An earlier version stored the policy.
  await db.deleteFrom('schedules').where('kind', '=', 'quiet_hours').execute()
  // The time zone of another workspace does not exist any more.
  await db
    .insertInto('workspaces')
    .values({ id: 'wsp_other', name: 'other', zero_data_retention: 0, created_at: 0 })
    .execute()
  const policy = JSON.stringify({ quietHours: { ...NIGHT, timezone: 'Europe/Nowhere' } })
  await db
    .insertInto('policies')
    .values({ workspace_id: 'wsp_other', policy, updated_by: null, updated_at: 0 })
    .execute()
  await first.close()
  const second = await start(t, { clock, infra, dataDir })
  t.equal(await second.findDueTime(), FIRST_START)
})
