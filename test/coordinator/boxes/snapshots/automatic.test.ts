// Snapshots that the coordinator takes and deletes by itself: automatic, final and expired ones.

import t from 'tap'
import { enqueueSleep } from '../../../../coordinator/boxes/lifecycle/enqueue-jobs.ts'
import { lockBox } from '../../../../coordinator/db/lock-box.ts'
import { transaction } from '../../../../coordinator/db/transaction.ts'
import { ProviderUnavailableError } from '../../../../coordinator/providers/provider.ts'
import { createFailingFault, createHangingFault } from '../../../support/fake-infrastructure.ts'
import {
  createRestartableSnapshots,
  type RestartableSnapshots,
} from '../../../support/restartable-snapshots.ts'
import { sqliteForTest } from '../../../support/sqlite.ts'
import { createTestClock, type TestClock } from '../../../support/workspace.ts'

const HOUR_MS = 60 * 60 * 1000
const DAY_MS = 24 * HOUR_MS
const NOW = Date.UTC(2030, 0, 2, 3, 4, 5)

async function takeAuto({ db, getSnapshots, waitForJobs }: RestartableSnapshots, boxId: string, now: number) {
  const id = await transaction(db, async (trx) => {
    const box = await trx.selectFrom('boxes').selectAll().where('id', '=', boxId).executeTakeFirstOrThrow()
    return getSnapshots().enqueueAutoSnapshot(trx, box, now)
  })
  await waitForJobs()
  return id
}

/** Creates a suspended box whose files are packed after the next start of the coordinator. */
async function createSuspendedBox(harness: RestartableSnapshots): Promise<string> {
  const { db, boxes, owner, createRunningBox, waitForState } = harness
  const boxId = await createRunningBox()
  await boxes.suspend(owner, boxId)
  await waitForState(boxId, 'suspended')
  await transaction(db, async (trx) => {
    const box = await lockBox(trx, boxId)
    if (box) await enqueueSleep(trx, box, { reason: 'packed', now: NOW })
  })
  return boxId
}

/** Runs the schedule of the snapshot at this time. */
async function expire(
  { getSnapshots }: RestartableSnapshots,
  clock: TestClock,
  id: string,
  now: number,
): Promise<void> {
  clock.advance(now - clock.now())
  await getSnapshots().expireSnapshot(id, new AbortController().signal)
}

t.test('keeps the newest automatic snapshots of a box', async (t) => {
  const harness = await createRestartableSnapshots(t, await sqliteForTest(t))
  const { db, infra, start, createRunningBox, list } = harness
  await start()
  const boxId = await createRunningBox()
  await db.updateTable('boxes').set({ auto_snapshot_hours: 24, auto_snapshot_keep: 2 }).execute()
  for (const hour of [0, 1, 2]) await takeAuto(harness, boxId, NOW + hour * HOUR_MS)
  const snapshots = await list()
  t.match(snapshots, [{ kind: 'auto' }, { kind: 'auto' }])
  t.match(
    snapshots.map(({ name }) => name.replace(/^.*-auto-/, '')),
    ['20300102T050405Z', '20300102T040405Z'],
  )
  t.equal(infra.archives.size, 2)
})

t.test('an automatic snapshot expires when its box has not replaced it', async (t) => {
  const clock = createTestClock()
  const harness = await createRestartableSnapshots(t, await sqliteForTest(t), { clock })
  const { db, infra, start, createRunningBox, list, waitForJobs } = harness
  await start()
  const boxId = await createRunningBox()
  await db.updateTable('boxes').set({ auto_snapshot_hours: 168, auto_snapshot_keep: 3 }).execute()
  const id = (await takeAuto(harness, boxId, NOW)) ?? ''
  const expiresAt = NOW + 168 * 4 * HOUR_MS
  t.equal((await list())[0]?.expiresAt, new Date(expiresAt).toISOString())
  const schedules = () => db.selectFrom('schedules').selectAll().where('target_id', '=', id).execute()
  t.match(await schedules(), [{ kind: 'expire_snapshot', due_at: expiresAt }])
  await expire(harness, clock, id, expiresAt - 1)
  t.equal((await list()).length, 1, 'not before')
  await expire(harness, clock, id, expiresAt)
  await waitForJobs()
  t.same(await list(), [])
  t.same(await schedules(), [])
  t.equal(infra.archives.size, 0)
  t.equal((await db.selectFrom('snapshots').selectAll().execute()).length, 0, 'leaves no row')
})

t.test('an automatic snapshot is kept for at least 7 days', async (t) => {
  const harness = await createRestartableSnapshots(t, await sqliteForTest(t))
  const { db, start, createRunningBox, list } = harness
  await start()
  const boxId = await createRunningBox()
  await db.updateTable('boxes').set({ auto_snapshot_hours: 1, auto_snapshot_keep: 1 }).execute()
  await takeAuto(harness, boxId, NOW)
  t.equal((await list())[0]?.expiresAt, new Date(NOW + 7 * DAY_MS).toISOString())
})

t.test('an automatic snapshot that becomes a template is kept', async (t) => {
  const clock = createTestClock()
  const harness = await createRestartableSnapshots(t, await sqliteForTest(t), { clock })
  const { db, owner, start, createRunningBox, getSnapshots, list, waitForJobs } = harness
  await start()
  const boxId = await createRunningBox()
  await db.updateTable('boxes').set({ auto_snapshot_hours: 1, auto_snapshot_keep: 1 }).execute()
  const id = (await takeAuto(harness, boxId, NOW)) ?? ''
  t.match(await getSnapshots().service.nameTemplate(owner, id, 'base'), {
    snapshot: { kind: 'template', expiresAt: null },
  })
  t.same(await db.selectFrom('schedules').selectAll().where('target_id', '=', id).execute(), [])
  await expire(harness, clock, id, NOW + 365 * DAY_MS)
  for (const hour of [1, 2]) await takeAuto(harness, boxId, NOW + hour * HOUR_MS)
  await waitForJobs()
  t.same(
    (await list()).map(({ kind }) => kind),
    ['auto', 'template'],
  )
})

t.test('takes no automatic snapshot of a box without files, and no second one at once', async (t) => {
  const harness = await createRestartableSnapshots(t, await sqliteForTest(t))
  const { db, infra, boxes, owner, start, createRunningBox, waitForJobs, list } = harness
  await start()
  const boxId = await createRunningBox()
  const released = Promise.withResolvers<void>()
  infra.before.capture = () => released.promise
  const enqueue = async (now: number) =>
    transaction(db, async (trx) => {
      const box = await trx.selectFrom('boxes').selectAll().where('id', '=', boxId).executeTakeFirstOrThrow()
      return harness.getSnapshots().enqueueAutoSnapshot(trx, box, now)
    })
  t.ok(await enqueue(NOW))
  t.equal(await enqueue(NOW + 1), null)
  released.resolve()
  await waitForJobs()
  await boxes.remove(owner, boxId)
  t.equal(await enqueue(NOW + 2), null)
  t.equal((await list()).length, 1)
})

t.test('leaves a final snapshot of a deleted box', async (t) => {
  const harness = await createRestartableSnapshots(t, await sqliteForTest(t), { finalSnapshots: true })
  const { infra, boxes, owner, start, createRunningBox, waitForState, list } = harness
  await start()
  const boxId = await createRunningBox()
  await boxes.remove(owner, boxId)
  await boxes.remove(owner, boxId)
  await waitForState(boxId, 'terminated')
  t.equal(infra.machines.size, 0)
  const [snapshot, ...others] = await list()
  t.same(others, [])
  t.match(snapshot, { kind: 'final', status: 'available', expiresAt: null, boxId })
  const { calls } = infra
  t.ok(calls.indexOf(`capture ${boxId}`) < calls.indexOf(`stop ${boxId}`), 'a stop interrupts a capture')
  const restored = await harness.getSnapshots().service.restore(owner, snapshot?.id ?? '', {})
  await waitForState(restored.id, 'running')
  t.equal(infra.machines.get(restored.id)?.files, 'content')
})

t.test('deletes a box whose final snapshot fails', async (t) => {
  const harness = await createRestartableSnapshots(t, await sqliteForTest(t), { finalSnapshots: true })
  const { infra, boxes, owner, start, createRunningBox, waitForState, waitForJobs, list } = harness
  await start()
  const boxId = await createRunningBox()
  infra.after.capture = createFailingFault(5, new Error('the disk is full'))
  const { operation } = await boxes.remove(owner, boxId)
  await waitForState(boxId, 'terminated')
  t.equal(infra.countCalls('capture'), 5)
  t.match(await list(), [{ kind: 'final', status: 'failed', error: 'the disk is full' }])
  await waitForJobs()
  t.equal(infra.archives.size, 0)
  t.ok(operation)
})

t.test('a snapshot waits for a provider that cannot be reached', async (t) => {
  const { infra, owner, start, createRunningBox, getSnapshots, waitForStatus } =
    await createRestartableSnapshots(t, await sqliteForTest(t))
  await start()
  const boxId = await createRunningBox()
  infra.before.capture = createFailingFault(7, new ProviderUnavailableError('the engine is down'))
  const { id } = await getSnapshots().service.create(owner, { boxId, name: 'a' })
  await waitForStatus(id, 'available')
  t.equal(infra.countCalls('capture'), 8)
})

t.test('deleting a final snapshot in progress lets the box be deleted', async (t) => {
  const harness = await createRestartableSnapshots(t, await sqliteForTest(t), { finalSnapshots: true })
  const { infra, boxes, owner, start, createRunningBox, getSnapshots, waitForState, waitForJobs, list } =
    harness
  await start()
  const boxId = await createRunningBox()
  infra.before.capture = () => new Promise<void>(() => undefined)
  await boxes.remove(owner, boxId)
  const [snapshot] = await list()
  await getSnapshots().service.remove(owner, snapshot?.id ?? '')
  await waitForState(boxId, 'terminated')
  await waitForJobs()
  t.same(await list(), [])
})

t.test('a box without files leaves no final snapshot', async (t) => {
  const harness = await createRestartableSnapshots(t, await sqliteForTest(t), { finalSnapshots: true })
  const { infra, boxes, owner, start, waitForState, list } = harness
  await start()
  infra.before.create = createFailingFault(5)
  const { id } = await boxes.create(owner, {})
  await waitForState(id, 'provision_failed')
  await boxes.remove(owner, id)
  await waitForState(id, 'terminated')
  t.same(await list(), [])
})

t.test('copies the files of a box in deep sleep from its archive, and does not wake the box', async (t) => {
  const harness = await createRestartableSnapshots(t, await sqliteForTest(t))
  const { infra, boxes, owner, start, waitForState, list } = harness
  const { getDetail, listStates, waitFor, waitForStatus, waitForJobs, getSnapshots } = harness
  await start()
  const boxId = await createSuspendedBox(harness)
  await start()
  await waitForState(boxId, 'deep_sleep')
  const { service } = getSnapshots()
  const { id } = await service.create(owner, { boxId, name: 'copy' })
  const template = await service.createTemplate(owner, boxId, { name: 'base' })
  const { box: fork } = await service.fork(owner, boxId, {})
  for (const snapshot of [id, template.id]) {
    await waitForStatus(snapshot, 'available')
    t.equal(infra.archives.get(snapshot), 'content')
  }
  await waitForState(fork.id, 'running')
  t.equal(infra.machines.get(fork.id)?.files, 'content')
  t.equal((await listStates(boxId)).at(-1), 'deep_sleep', 'the box sleeps on')
  t.notOk(infra.machines.has(boxId))

  // The archive is removed after a wake, and not while it is being copied.
  const copying = Promise.withResolvers<void>()
  const started = Promise.withResolvers<void>()
  infra.before.copyFiles = () => {
    started.resolve()
    return copying.promise
  }
  const late = await service.create(owner, { boxId, name: 'late' })
  await started.promise
  await boxes.wake(owner, boxId)
  await waitFor('the box to run while the removal of its archive waits', async () => {
    const { box, job } = await getDetail(boxId)
    return box.observedState === 'running' && job?.op === 'clean_up'
  })
  infra.setFiles(boxId, 'changed')
  copying.resolve()
  await waitForStatus(late.id, 'available')
  t.equal(infra.archives.get(late.id), 'content')
  await waitForJobs()
  const ids = (await list()).map((snapshot) => snapshot.id)
  await waitFor('the removal of the archive', () => infra.archives.size === ids.length)
  t.same([...infra.archives.keys()].sort(), ids.sort())
})

t.test('takes the final snapshot of a box in deep sleep from its archive', async (t) => {
  const harness = await createRestartableSnapshots(t, await sqliteForTest(t), { finalSnapshots: true })
  const { db, infra, boxes, owner, start, createRunningBox, waitForState, list } = harness
  await start()
  const boxId = await createRunningBox()
  await boxes.suspend(owner, boxId)
  await waitForState(boxId, 'suspended')
  infra.machines.delete(boxId)
  infra.archives.set('arc_1', 'sleeping')
  await db.updateTable('boxes').set({ observed_state: 'deep_sleep', archive_id: 'arc_1' }).execute()
  await boxes.remove(owner, boxId)
  await waitForState(boxId, 'terminated')
  const [snapshot] = await list()
  t.match(snapshot, { kind: 'final', status: 'available' })
  t.same([...infra.archives], [[snapshot?.id, 'sleeping']])
  t.equal(infra.machines.size, 0)
})

t.test('takes the final snapshot from the archive when the machine is incomplete', async (t) => {
  const harness = await createRestartableSnapshots(t, await sqliteForTest(t), { finalSnapshots: true })
  const { infra, boxes, owner, start, waitFor, waitForState, waitForJobs, list } = harness
  await start()
  const boxId = await createSuspendedBox(harness)
  infra.before.destroy = (id) => {
    delete infra.before.destroy
    infra.setFiles(id, 'incomplete')
    return createHangingFault().fault(id)
  }
  await start()
  await waitFor('the removal of the machine', () => infra.countCalls('destroy') === 1)
  await boxes.remove(owner, boxId)
  await waitForJobs()
  const [snapshot] = await list()
  t.match(snapshot, { kind: 'final', status: 'available' })
  t.equal(infra.archives.get(snapshot?.id ?? ''), 'content')
  await start()
  await waitForState(boxId, 'terminated')
  t.same([infra.machines.size, [...infra.archives.values()]], [0, ['content']])
})

t.test('forgets a deleted snapshot after 30 days', async (t) => {
  const harness = await createRestartableSnapshots(t, await sqliteForTest(t))
  const { db, owner, start, createRunningBox, getSnapshots, waitForStatus, waitForJobs } = harness
  await start()
  const { service, prune } = getSnapshots()
  const boxId = await createRunningBox()
  const { id } = await service.create(owner, { boxId, name: 'a' })
  await waitForStatus(id, 'available')
  await service.remove(owner, id)
  await waitForJobs()
  t.equal(await prune(), 0)
  await db
    .updateTable('snapshots')
    .set({ deleted_at: Date.now() - 30 * DAY_MS - 1000 })
    .execute()
  t.equal(await prune(), 1)
  await t.rejects(service.remove(owner, id), { code: 'not_found' })
})
