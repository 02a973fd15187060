// Schedules over HTTP: deadlines, idle times, the tiers of a suspended box, automatic snapshots, expiry and retention.
import t, { type Test } from 'tap'
import { PermanentProviderError } from '../../coordinator/providers/provider.ts'

import {
  type ApiResponse,
  type CoordinatorOptions,
  startTestCoordinator,
  type TestCoordinator,
} from '../support/coordinator.ts'
import { createFailingFault, FakeInfrastructure } from '../support/fake-infrastructure.ts'
import { skipOnReplicas } from '../support/on-replicas.ts'
import { createTestSession } from '../support/session.ts'
import { waitUntil } from '../support/wait-until.ts'
import { createTestClock } from '../support/workspace.ts'
import { takeSnapshot } from './snapshots-support.ts'

const MINUTE_MS = 60_000
const HOUR_MS = 60 * MINUTE_MS
const DAY_MS = 24 * HOUR_MS

const listReasons = async ({ api }: TestCoordinator, id: string): Promise<string[]> =>
  (await api('GET', `/boxes/${id}`)).json.events
    .filter(({ toState }: { toState: string }) => toState === 'suspending')
    .map(({ reason }: { reason: string }) => reason)

async function startWithBox(t: Test, body: object = {}, options: CoordinatorOptions = {}) {
  const clock = createTestClock()
  const infra = options.infra ?? new FakeInfrastructure()
  const coordinator = await startTestCoordinator(t, { ...options, clock, infra })
  const { api, instance, waitForState } = coordinator
  const { json } = await api('POST', '/boxes', { name: 'plum', ...body })
  const { id } = json.box
  await waitForState(id, 'running')
  const { db } = instance.context
  const findDueTime = async (kind: string) => {
    const row = await db
      .selectFrom('schedules')
      .select('due_at')
      .where('target_id', '=', id)
      .where('kind', '=', kind)
      .executeTakeFirst()
    return row?.due_at
  }
  return {
    ...coordinator,
    ...{ clock, infra, id, findDueTime },
    patch: (changes: object) => api('PATCH', `/boxes/${id}`, changes),
    getBox: async () => (await api('GET', `/boxes/${id}`)).json.box,
    advance(ms: number) {
      clock.advance(ms)
      instance.context.scheduler.runDue()
    },
    /** Waits until the idle time has been evaluated, and moved to a later time. */
    waitForEvaluation: () =>
      waitUntil(
        'the idle time is evaluated',
        async () => ((await findDueTime('auto_pause')) ?? 0) > clock.now(),
      ),
  }
}

t.test('a box is suspended at its deadline, which counts from the create request', async (t) => {
  const coordinator = await startWithBox(t, { ttlMinutes: 5 })
  const { advance, findDueTime, clock, getBox, waitForState, id } = coordinator
  const deadline = await findDueTime('pause')
  t.equal(deadline, clock.now() + 5 * MINUTE_MS)
  advance(5 * MINUTE_MS - 1)
  t.match(await getBox(), { desiredState: 'running', pauseAt: String })
  advance(1)
  t.match(await waitForState(id, 'suspended'), { desiredState: 'suspended', pauseAt: null })
  t.same(await listReasons(coordinator, id), ['deadline reached'])
  t.equal(await findDueTime('pause'), undefined)
})

t.test('a changed deadline replaces the earlier one, and a cleared one has no effect', async (t) => {
  const { patch, advance, getBox, findDueTime, clock, waitForState, id } = await startWithBox(t)
  await patch({ ttlMinutes: 5 })
  await patch({ ttlMinutes: 60 })
  advance(30 * MINUTE_MS)
  t.equal((await getBox()).desiredState, 'running')
  await patch({ pauseAt: null })
  t.equal(await findDueTime('pause'), undefined)
  await patch({ pauseAt: new Date(clock.now() + 1).toISOString() })
  advance(1)
  await waitForState(id, 'suspended')
})

t.test('the deadline of a box that was suspended before does not suspend it again', async (t) => {
  const coordinator = await startWithBox(t, { ttlMinutes: 5 })
  const { api, id, advance, waitForState, getBox } = coordinator
  await api('POST', `/boxes/${id}/suspend`)
  await waitForState(id, 'suspended')
  advance(10 * MINUTE_MS)
  await waitUntil('the deadline is cleared', async () => (await getBox()).pauseAt === null)
  await api('POST', `/boxes/${id}/wake`)
  await waitForState(id, 'running')
  t.same(await listReasons(coordinator, id), ['suspended'])
})

t.test('a deadline that passed while no coordinator was running is kept by the next one', async (t) => {
  const { id, dataDir, infra, clock, close } = await startWithBox(t, { ttlMinutes: 5 })
  await close()
  clock.advance(10 * MINUTE_MS)
  const next = await startTestCoordinator(t, { clock, infra, dataDir })
  await next.waitForState(id, 'suspended')
  t.same(await listReasons(next, id), ['deadline reached'])
})

const listDeletions = async ({ api }: Pick<TestCoordinator, 'api'>, id: string): Promise<string[]> =>
  (await api('GET', `/boxes/${id}`)).json.events
    .filter(({ toState }: { toState: string }) => toState === 'terminating')
    .map(({ reason, actor }: { reason: string; actor: string }) => `${actor}: ${reason}`)

t.test(
  'a box is deleted after its time, once, with the reason in its events and the audit log',
  async (t) => {
    const coordinator = await startWithBox(t, { deleteAfterMinutes: 120 })
    const { advance, findDueTime, clock, getBox, waitForState, id, api } = coordinator
    t.equal(await findDueTime('delete'), clock.now() + 2 * HOUR_MS)
    t.match(await getBox(), { deleteAt: new Date(clock.now() + 2 * HOUR_MS).toISOString() })
    await api('POST', `/boxes/${id}/suspend`)
    await waitForState(id, 'suspended')
    advance(2 * HOUR_MS - 1)
    t.match(await getBox(), { desiredState: 'suspended' })
    advance(1)
    await waitForState(id, 'terminated')
    const reason = 'deleted after 2 h, as set at its creation'
    t.same(await listDeletions(coordinator, id), [`system: ${reason}`])
    const session = await createTestSession(coordinator)
    const { json } = await api('GET', `/audit?kind=box.delete&boxId=${id}`, undefined, session)
    t.match(json.events, [{ actorKind: 'system', detail: { name: 'plum', reason } }])
    t.equal(json.events.length, 1)
    t.match((await api('DELETE', `/boxes/${id}`)).json, { operation: { kind: 'box_delete' } }, 'the same one')
    t.equal(await findDueTime('delete'), undefined)
  },
)

t.test('a changed deletion counts from the change, and a removed one has no effect', async (t) => {
  const coordinator = await startWithBox(t, { deleteAfterMinutes: 5 })
  const { patch, advance, getBox, findDueTime, clock, waitForState, id } = coordinator
  t.match((await patch({ deleteAfterMinutes: null })).json.box, { deleteAt: null })
  t.equal(await findDueTime('delete'), undefined)
  advance(10 * MINUTE_MS)
  t.equal((await getBox()).desiredState, 'running')
  await patch({ deleteAfterMinutes: 90 })
  t.equal(await findDueTime('delete'), clock.now() + 90 * MINUTE_MS)
  advance(90 * MINUTE_MS)
  await waitForState(id, 'terminated')
  t.same(await listDeletions(coordinator, id), ['system: deleted 90 min after its deletion was set'])
})

t.test('a deletion that became due while no coordinator was running is made by the next one', async (t) => {
  const { id, dataDir, infra, clock, close } = await startWithBox(t, { deleteAfterMinutes: 1440 })
  await close()
  clock.advance(2 * DAY_MS)
  const next = await startTestCoordinator(t, { clock, infra, dataDir })
  await next.waitForState(id, 'terminated')
  t.same(await listDeletions(next, id), ['system: deleted after 1 d, as set at its creation'])
})

t.test('a box that could not be created is deleted too', async (t) => {
  const infra = new FakeInfrastructure()
  const coordinator = await startWithBox(t, {}, { infra })
  const { api, advance, waitForState } = coordinator
  infra.before.create = createFailingFault(1, new PermanentProviderError('the disk is full'))
  const { json } = await api('POST', '/boxes', { name: 'lime', deleteAfterMinutes: 5 })
  await waitForState(json.box.id, 'provision_failed')
  advance(5 * MINUTE_MS)
  await waitForState(json.box.id, 'terminated')
})

t.test('a fork and a box from a snapshot do not inherit the deletion', async (t) => {
  const coordinator = await startWithBox(t, { deleteAfterMinutes: 60 })
  const { api, id } = coordinator
  const fork = await api('POST', `/boxes/${id}/fork`, {})
  t.match(fork.json.box, { deleteAt: null })
  const snapshot = await takeSnapshot(coordinator, id)
  t.match((await api('POST', `/snapshots/${snapshot}/restore`, {})).json.box, { deleteAt: null })
  t.match((await api('POST', '/boxes', { fromSnapshotId: snapshot })).json.box, { deleteAt: null })
  const own = await api('POST', '/boxes', { fromSnapshotId: snapshot, deleteAfterMinutes: 5 })
  t.match(own.json.box, { deleteAt: String })
})

t.test('an idle box is suspended after the agent has confirmed it', async (t) => {
  const coordinator = await startWithBox(t, { autoPauseMin: 30 })
  const { advance, infra, id, waitForState, getBox } = coordinator
  infra.idleSeconds.set(id, 1800)
  advance(30 * MINUTE_MS - 1)
  t.equal((await getBox()).desiredState, 'running')
  t.equal(infra.calls.filter((call) => call === `request ${id} /activity`).length, 0)
  advance(1)
  await waitForState(id, 'suspended')
  t.same(await listReasons(coordinator, id), ['idle for 30 minutes'])
  t.equal(infra.calls.filter((call) => call === `request ${id} /activity`).length, 1)
})

t.test('work that began in the last seconds postpones the pause', async (t) => {
  const { advance, infra, id, waitForState, waitForEvaluation, findDueTime, clock, getBox } =
    await startWithBox(t, {
      autoPauseMin: 30,
    })
  infra.idleSeconds.set(id, 2)
  advance(30 * MINUTE_MS)
  await waitForEvaluation()
  t.equal((await getBox()).desiredState, 'running')
  t.equal(
    await findDueTime('auto_pause'),
    clock.now() + 30 * MINUTE_MS - 2000,
    'idle time counts from the work',
  )
  infra.idleSeconds.set(id, 1800)
  advance(30 * MINUTE_MS - 2000)
  await waitForState(id, 'suspended')
})

t.test('a box whose agent does not respond is not suspended for idleness, and asked again', async (t) => {
  const { advance, infra, id, waitForState, waitForEvaluation, getBox } = await startWithBox(t, {
    autoPauseMin: 30,
  })
  for (let attempt = 0; attempt < 3; attempt++) {
    advance(30 * MINUTE_MS)
    await waitForEvaluation()
    t.equal((await getBox()).desiredState, 'running')
  }
  infra.idleSeconds.set(id, 100_000)
  advance(MINUTE_MS)
  await waitForState(id, 'suspended')
})

/** A box that has been idle for long enough. Its agent answers when `answer` is called. */
async function startPause(t: Test) {
  const coordinator = await startWithBox(t, { autoPauseMin: 30 })
  const { advance, infra, id, edge } = coordinator
  const { db } = coordinator.instance.context
  infra.idleSeconds.set(id, 1800)
  const listChanges = async () => {
    const changes = db.selectFrom('audit_log').select('kind').where('kind', 'in', ['box.suspend', 'box.wake'])
    return (await changes.orderBy('no').execute()).map(({ kind }) => kind)
  }
  const tunnel = infra.tunnels.current(id)
  if (tunnel === undefined) throw new Error('the agent is not connected')
  const { call } = tunnel
  const asked = Promise.withResolvers<void>()
  const answered = Promise.withResolvers<void>()
  /** What had happened to the box when a command was sent. */
  const changesBefore: string[][] = []
  tunnel.call = async (options) => {
    if (options.path === '/exec') changesBefore.push(await listChanges())
    if (options.path === '/activity') {
      asked.resolve()
      await answered.promise
    }
    return call(options)
  }
  advance(30 * MINUTE_MS)
  await asked.promise
  return {
    ...coordinator,
    answer: answered.resolve,
    sendCommand: () => edge('plum', 'POST', '/exec', { command: 'true' }),
    async checkWoken(response: Promise<ApiResponse>) {
      // The agents of the test reject commands.
      t.equal((await response).status, 502)
      const expected = ['box.suspend', 'box.wake']
      t.same(await listChanges(), expected, 'the request wakes the box')
      // A wake that comes before the suspend has been carried out keeps the agent connected.
      for (const changes of changesBefore) t.same(changes, expected, 'the command is sent after the wake')
    },
  }
}

t.test(
  'a request that arrives while the agent is asked waits, and wakes the box that was suspended',
  async (t) => {
    const { instance, answer, sendCommand, checkWoken } = await startPause(t)
    const response = sendCommand()
    await waitUntil('the request waits', () => instance.context.edge.limiter.acquiredCount() === 1)
    answer()
    await checkWoken(response)
  },
)

t.test('a request that has read the box before the pause was decided wakes it too', async (t) => {
  const { id, instance, answer, sendCommand, checkWoken } = await startPause(t)
  const { boxes, pauseGate } = instance.context.edge
  const { resolve } = boxes
  boxes.resolve = async (actor, name) => {
    const box = await resolve(actor, name)
    answer()
    await pauseGate.wait(id)
    return box
  }
  await checkWoken(sendCommand())
})

t.test('the time before a wake, and before the idle time was set, does not count', async (t) => {
  const { advance, infra, api, id, patch, waitForState, findDueTime, clock, getBox } = await startWithBox(t)
  infra.idleSeconds.set(id, 1_000_000)
  advance(60 * MINUTE_MS)
  await patch({ autoPauseMin: 30 })
  t.equal(await findDueTime('auto_pause'), clock.now() + 30 * MINUTE_MS)
  await api('POST', `/boxes/${id}/suspend`)
  await waitForState(id, 'suspended')
  t.equal(await findDueTime('auto_pause'), undefined)
  advance(60 * MINUTE_MS)
  await api('POST', `/boxes/${id}/wake`)
  await waitForState(id, 'running')
  t.equal(await findDueTime('auto_pause'), clock.now() + 30 * MINUTE_MS)
  // The agent of a box that was frozen counts the frozen time too.
  advance(29 * MINUTE_MS)
  t.equal((await getBox()).desiredState, 'running')
  await patch({ autoPauseMin: null })
  t.equal(await findDueTime('auto_pause'), undefined)
  await patch({ autoPauseMin: 30 })
  advance(30 * MINUTE_MS)
  await waitForState(id, 'suspended')
})

t.test('a deleted box has no schedules', async (t) => {
  const { api, id, waitForState, instance } = await startWithBox(t, { autoPauseMin: 30, ttlMinutes: 5 })
  await api('PATCH', `/boxes/${id}`, { autoSnapshotHours: 1 })
  await api('DELETE', `/boxes/${id}`)
  await waitForState(id, 'terminated')
  const { db } = instance.context
  t.same(await db.selectFrom('schedules').selectAll().where('target_id', '=', id).execute(), [])
})

async function startFreezing(t: Test, options: CoordinatorOptions = {}) {
  const infra = new FakeInfrastructure()
  infra.canFreeze = true
  const started = await startWithBox(t, {}, { infra, ...options })
  const suspend = async (id: string) => {
    await started.api('POST', `/boxes/${id}/suspend`)
    return started.waitForState(id, 'suspended')
  }
  return { ...started, suspend }
}

t.test('a frozen box is stopped after an hour, and packed into an archive after 14 days', async (t) => {
  const coordinator = await startFreezing(t)
  const { advance, suspend, getBox, id, api, infra, waitForState, findDueTime, clock } = coordinator
  t.equal((await suspend(id)).suspendedAs, 'frozen')
  advance(HOUR_MS - 1)
  await waitUntil(
    'the schedules have been evaluated',
    async () => (await findDueTime('stop_frozen')) === clock.now() + 1,
  )
  t.equal((await getBox()).suspendedAs, 'frozen')
  advance(1)
  // suspendedAs is stopped from the beginning of the stop.
  const stopped = await waitUntil('the box is stopped', async () => {
    const { json } = await api('GET', `/boxes/${id}`)
    return json.job === null && json.box.suspendedAs === 'stopped' && json
  })
  t.match(stopped, { box: { observedState: 'suspended' }, events: [{ reason: /frozen for 60 minutes/ }] })
  t.equal(infra.machines.get(id)?.state, 'stopped')

  advance(14 * DAY_MS - HOUR_MS)
  await waitForState(id, 'deep_sleep')
  t.match((await api('GET', `/boxes/${id}`)).json.events[0], { reason: /suspended for 14 days/ })
  t.same(infra.countCalls('stop', id), 1)
  await api('POST', `/boxes/${id}/wake`)
  await waitForState(id, 'running')
  t.same(await findDueTime('deep_sleep'), undefined)
})

t.test('a frozen box that is woken is not stopped', async (t) => {
  const { advance, suspend, id, api, infra, waitForState, findDueTime } = await startFreezing(t)
  await suspend(id)
  advance(HOUR_MS - 1)
  await api('POST', `/boxes/${id}/wake`)
  await waitForState(id, 'running')
  t.equal(await findDueTime('stop_frozen'), undefined)
  advance(HOUR_MS)
  await suspend(id)
  t.equal(infra.countCalls('stop', id), 0)
})

t.test('boxes stay suspended without deep sleep where it is switched off', async (t) => {
  const { advance, suspend, id, findDueTime, getBox } = await startFreezing(t, {
    env: { BOXWOOD_FREEZE_MINUTES: '0', BOXWOOD_DEEP_SLEEP_DAYS: '0' },
  })
  t.equal((await suspend(id)).suspendedAs, 'stopped')
  advance(1000 * DAY_MS)
  await waitUntil('the schedule is deleted', async () => (await findDueTime('deep_sleep')) === undefined)
  t.equal((await getBox()).observedState, 'suspended')
})

// The boxes of several hosts do not share the memory of a machine.
t.test(
  'while the memory is scarce, frozen boxes are stopped, the oldest first',
  { skip: skipOnReplicas() },
  async (t) => {
    let isScarce = false
    const coordinator = await startFreezing(t, { memory: { isUnderMemoryPressure: async () => isScarce } })
    const { advance, suspend, api, waitForState, id: oldest } = coordinator
    const { json } = await api('POST', '/boxes', { name: 'newer' })
    const newer: string = json.box.id
    await waitForState(newer, 'running')
    await suspend(oldest)
    advance(MINUTE_MS)
    await suspend(newer)
    const readSuspendedAs = async (id: string) => (await api('GET', `/boxes/${id}`)).json.box.suspendedAs
    isScarce = true
    advance(MINUTE_MS)
    await waitUntil('the oldest box is stopped', async () => (await readSuspendedAs(oldest)) === 'stopped')
    t.equal(await readSuspendedAs(newer), 'frozen')
    t.match((await api('GET', `/boxes/${oldest}`)).json.events[0], {
      reason: /memory of the machine is scarce/,
    })
    advance(MINUTE_MS)
    await waitUntil('the other box is stopped', async () => (await readSuspendedAs(newer)) === 'stopped')
  },
)

t.test('takes automatic snapshots while the box runs, and one after it has been suspended', async (t) => {
  const { advance, patch, api, id, waitForState, findDueTime, clock } = await startWithBox(t)
  const listSnapshots = async () => (await api('GET', '/snapshots')).json.snapshots
  const waitForSnapshots = (count: number) =>
    waitUntil(`there are ${count} snapshots`, async () => {
      const snapshots = await listSnapshots()
      const isComplete = snapshots.every(({ status }: { status: string }) => status === 'available')
      return snapshots.length === count && isComplete && snapshots
    })
  await patch({ autoSnapshotHours: 2, autoSnapshotKeep: 10 })
  t.equal(await findDueTime('auto_snapshot'), clock.now() + 2 * HOUR_MS)
  advance(2 * HOUR_MS)
  t.match(await waitForSnapshots(1), [{ kind: 'auto', boxId: id, expiresAt: String }])
  advance(2 * HOUR_MS)
  await waitForSnapshots(2)
  clock.advance(1)
  await api('POST', `/boxes/${id}/suspend`)
  await waitForState(id, 'suspended')
  advance(2 * HOUR_MS)
  await waitForSnapshots(3)
  for (let times = 0; times < 3; times++) {
    advance(2 * HOUR_MS)
    await waitUntil(
      'the schedule has been evaluated',
      async () => ((await findDueTime('auto_snapshot')) ?? 0) > clock.now(),
    )
  }
  await waitForSnapshots(3)
  await patch({ autoSnapshotHours: null })
  t.equal(await findDueTime('auto_snapshot'), undefined)
})

t.test('an automatic snapshot is deleted when it expires', async (t) => {
  const { advance, patch, api } = await startWithBox(t)
  const listSnapshots = async () => (await api('GET', '/snapshots')).json.snapshots
  await patch({ autoSnapshotHours: 168, autoSnapshotKeep: 1 })
  advance(168 * HOUR_MS)
  const [snapshot] = await waitUntil('there is a snapshot', async () => {
    const snapshots = await listSnapshots()
    return snapshots[0]?.status === 'available' && snapshots
  })
  await patch({ autoSnapshotHours: null })
  advance(Date.parse(snapshot.expiresAt) - Date.parse(snapshot.createdAt) - 1)
  t.match(await listSnapshots(), [{ status: 'available' }])
  advance(1)
  await waitUntil('the snapshot is deleted', async () => (await listSnapshots()).length === 0)
})

t.test('what has expired is deleted every hour, also across restarts', async (t) => {
  const { api, id, advance, clock, infra, dataDir, close, waitForState, instance } = await startWithBox(t)
  const headers = { 'idempotency-key': 'old' }
  const { json } = await api('POST', '/boxes', { name: 'fig' }, { headers })
  await waitForState(json.box.id, 'running')
  const { operation } = (await api('DELETE', `/boxes/${id}`)).json
  await waitForState(id, 'terminated')
  const { db } = instance.context
  const countKeys = async () => (await db.selectFrom('idempotency_keys').selectAll().execute()).length
  advance(DAY_MS)
  await waitUntil('the key is deleted', async () => (await countKeys()) === 0)
  t.equal((await api('GET', `/operations/${operation.id}`)).status, 200)
  await close()

  clock.advance(30 * DAY_MS)
  const next = await startTestCoordinator(t, { clock, infra, dataDir })
  const nextDb = next.instance.context.db
  await waitUntil('the operation is deleted', async () => {
    const rows = await nextDb.selectFrom('operations').selectAll().execute()
    return rows.length === 0
  })
  await waitUntil(
    'the deleted box is forgotten',
    async () => (await next.api('GET', `/boxes/${id}`)).status === 404,
  )
  const readDueTimes = () =>
    nextDb.selectFrom('schedules').selectAll().where('kind', '=', 'prune').orderBy('target_id').execute()
  await waitUntil('every deletion is scheduled for the next hour', async () => {
    const rows = await readDueTimes()
    return rows.every(({ due_at }) => due_at === clock.now() + HOUR_MS)
  })
  t.same(
    (await readDueTimes()).map(({ target_id }) => target_id),
    [
      ...[
        'agent_accounts',
        'audit_log',
        'aws_connects',
        'boxes',
        'commands',
        'deleted_machines',
        'deletions',
        'download_links',
        'enrollments',
        'environments',
        'idempotency_keys',
        'image_uses',
        'metrics',
        'operations',
      ],
      ...['port_shares', 'process_snapshots', 'sessions', 'share_viewers', 'snapshots', 'tickets'],
    ],
  )
})
