// Two hosts on one database: each coordinator works only on the machines and archives of its own host, and nothing of a host that
// is down is lost.
import t, { type Test } from 'tap'
import { enqueueSleep } from '../../../../coordinator/boxes/lifecycle/enqueue-jobs.ts'
import { lockBox } from '../../../../coordinator/db/lock-box.ts'
import type { Db } from '../../../../coordinator/db/open.ts'
import { transaction } from '../../../../coordinator/db/transaction.ts'
import { onEachDatabase } from '../../../support/db.ts'
import { createTwoHosts, listCalls } from '../../../support/two-hosts.ts'
import { waitUntil } from '../../../support/wait-until.ts'

const UNAVAILABLE = /^the machine that runs the box is not available$/

/** Both coordinators run. */
async function startTwoHosts(t: Test, db: Db) {
  const hosts = await createTwoHosts(t, db)
  await hosts.a.start()
  await hosts.b.start()
  const { owner, waitForState, scheduleBox } = hosts
  return {
    ...hosts,
    async freeze(id: string) {
      await hosts.a.boxes.suspend(owner, id)
      await waitForState(id, 'suspended')
    },
    async putToSleep(id: string) {
      await hosts.a.boxes.suspend(owner, id)
      await waitForState(id, 'suspended')
      await transaction(db, async (trx) => {
        const box = await lockBox(trx, id)
        return box !== undefined && enqueueSleep(trx, box, { reason: 'asleep', now: Date.now() })
      })
      scheduleBox(id)
      await waitForState(id, 'deep_sleep')
    },
  }
}

await onEachDatabase(t, async (t, newDb) => {
  await t.test('only the host of a box calls its provider, whoever gets the requests', async (t) => {
    const { a, b, owner, createRunningBox, freeze, waitForState } = await startTwoHosts(t, await newDb(t))
    const [ofA, ofB] = [await createRunningBox(a), await createRunningBox(b)]
    t.same([...a.infra.machines.keys()], [ofA])
    t.same([...b.infra.machines.keys()], [ofB])
    await freeze(ofA)
    await freeze(ofB)
    await b.boxes.wake(owner, ofA)
    await waitForState(ofA, 'running')
    await b.boxes.remove(owner, ofA)
    await waitForState(ofA, 'terminated')
    t.same([...a.infra.machines.keys()], [])
    t.same(listCalls(b, ofA), [])
    t.same(listCalls(a, ofB), [])
  })

  await t.test('a start leaves the frozen boxes of another host frozen', async (t) => {
    const { a, b, createRunningBox, freeze, getDetail } = await startTwoHosts(t, await newDb(t))
    const id = await createRunningBox(a)
    await freeze(id)
    await b.stop()
    await b.start()
    t.match(await getDetail(id), { box: { observedState: 'suspended', suspendedAs: 'frozen' }, job: null })
    t.equal(a.infra.machines.get(id)?.state, 'frozen')
    t.same(listCalls(b, id), [])
  })

  await t.test('a start does not recover the running boxes of another host', async (t) => {
    const { a, b, createRunningBox, getDetail } = await startTwoHosts(t, await newDb(t))
    const [ofA, ofB] = [await createRunningBox(a), await createRunningBox(b)]
    const { events } = await getDetail(ofA)
    await b.stop()
    b.infra.powerOff(ofB)
    await b.start()
    // Its own box, which has stopped, is recovered: a box of the other host would be recovered before.
    await waitUntil('the box is started again', async () => b.infra.countCalls('start', ofB) === 2)
    t.match(await getDetail(ofA), { box: { observedState: 'running' }, job: null, events })
    t.same(listCalls(b, ofA), [])
  })

  await t.test('box down suspends the boxes of its host only', async (t) => {
    const { a, b, createRunningBox, freeze, getDetail } = await startTwoHosts(t, await newDb(t))
    const [running, frozen, ofB] = [
      await createRunningBox(a),
      await createRunningBox(a),
      await createRunningBox(b),
    ]
    await freeze(frozen)
    const { hostname } = (await getDetail(ofB)).box
    t.same(await b.lifecycle.suspendLocalBoxes('stopped'), {
      suspended: [hostname],
      stopped: [],
      failed: [],
      left: [],
    })
    t.match(await getDetail(running), { box: { observedState: 'running' } })
    t.match(await getDetail(frozen), { box: { suspendedAs: 'frozen' } })
    t.same(
      [running, frozen].map((id) => a.infra.machines.get(id)?.state),
      ['running', 'frozen'],
    )
    t.equal(b.infra.machines.get(ofB)?.state, 'stopped')
  })

  await t.test('snapshots and forks stay on the host of their box', async (t) => {
    const { a, b, owner, createRunningBox, waitForSnapshot, waitForState } = await startTwoHosts(
      t,
      await newDb(t),
    )
    const id = await createRunningBox(a, 'precious')
    const snapshot = await b.snapshots.create(owner, { boxId: id, name: 'first' })
    await waitForSnapshot(snapshot.id)
    const restored = await b.snapshots.restore(owner, snapshot.id, {})
    const created = await b.boxes.create(owner, { fromSnapshotId: snapshot.id })
    const { box: fork } = await b.snapshots.fork(owner, id, {})
    for (const box of [restored, created, fork]) {
      await waitForState(box.id, 'running')
      t.equal(a.infra.machines.get(box.id)?.files, 'precious')
    }
    await b.snapshots.remove(owner, snapshot.id)
    await waitUntil('the files are removed', () => !a.infra.archives.has(snapshot.id))
    t.same([b.infra.machines.size, b.infra.archives.size, b.infra.calls], [0, 0, []])
  })

  await t.test('a host stops and returns: everything is as before', async (t) => {
    const hosts = await startTwoHosts(t, await newDb(t))
    const { a, b, db, owner, createRunningBox, freeze, putToSleep } = hosts
    const { getDetail, waitForState, waitForSnapshot } = hosts
    const running = await createRunningBox(a, 'runs')
    const frozen = await createRunningBox(a, 'frozen')
    const sleeping = await createRunningBox(a, 'sleeps')
    const deleted = await createRunningBox(a)
    await freeze(frozen)
    await putToSleep(sleeping)
    await freeze(deleted)
    const snapshot = await a.snapshots.create(owner, { boxId: running, name: 'first' })
    await waitForSnapshot(snapshot.id)

    await a.stop()
    await waitUntil('the running box is degraded', async () => {
      const { box } = await getDetail(running)
      return box.observedState === 'degraded'
    })
    t.match(await getDetail(running), {
      box: { desiredState: 'running' },
      job: { op: 'recover', lastError: /^The machine that runs the box is not available\./ },
      events: [{ fromState: 'running', toState: 'degraded', reason: UNAVAILABLE, actor: 'system' }],
    })
    t.match(await getDetail(frozen), {
      box: { observedState: 'suspended', suspendedAs: 'frozen' },
      job: null,
    })
    t.match(await getDetail(sleeping), { box: { observedState: 'deep_sleep' }, job: null })
    const unavailable = { code: 'snapshot_unavailable', message: /is not available\. Try again when it is/ }
    await t.rejects(b.snapshots.restore(owner, snapshot.id, {}), unavailable)
    await t.rejects(b.boxes.create(owner, { fromSnapshotId: snapshot.id }), unavailable)
    const noFiles = { code: 'no_volume', message: /^The machine that runs box .* is not available\./ }
    await t.rejects(b.snapshots.fork(owner, frozen, {}), noFiles)
    await t.rejects(b.snapshots.create(owner, { boxId: frozen, name: 'second' }), noFiles)
    await b.boxes.wake(owner, sleeping)
    await b.boxes.remove(owner, deleted)
    for (const id of [sleeping, deleted])
      await waitUntil('the job says why it waits', async () =>
        /^The machine that runs the box/.test((await getDetail(id)).job?.lastError ?? ''),
      )
    t.match(await getDetail(deleted), { box: { observedState: 'suspended' }, job: { op: 'delete' } })
    // A start of the other host changes nothing.
    await b.stop()
    await b.start()
    const inserted = await db.selectFrom('boxes').select('id').where('terminated_at', 'is', null).execute()
    t.equal(inserted.length, 4)
    for (const { id } of inserted) t.same(listCalls(b, id), [])

    await a.start()
    await waitForState(running, 'running')
    t.equal(a.infra.countCalls('start', running), 1, 'it has run on')
    await waitForState(deleted, 'terminated')
    await waitForState(sleeping, 'running')
    t.equal(a.infra.machines.get(sleeping)?.files, 'sleeps')
    t.equal(a.infra.machines.get(frozen)?.state, 'frozen')
    await b.boxes.wake(owner, frozen)
    await waitForState(frozen, 'running')
    t.match(await getDetail(frozen), { pausesSurvived: 1 })
    const restored = await b.snapshots.restore(owner, snapshot.id, {})
    await waitForState(restored.id, 'running')
    t.equal(a.infra.machines.get(restored.id)?.files, 'runs')
  })

  await t.test('a box of a host that is down runs while its agent is connected elsewhere', async (t) => {
    const { a, b, createRunningBox, getDetail, waitForState } = await startTwoHosts(t, await newDb(t))
    const [connected, other] = [await createRunningBox(a), await createRunningBox(a)]
    b.infra.connectAgent(connected)
    await a.stop()
    const waitUntilDegraded = (id: string) =>
      waitUntil('the box is degraded', async () => (await getDetail(id)).box.observedState === 'degraded')
    await waitUntilDegraded(other)
    t.match(await getDetail(connected), { box: { observedState: 'running' }, job: null })
    b.infra.dropTunnel(connected)
    await waitUntilDegraded(connected)
    await a.start()
    for (const id of [connected, other]) await waitForState(id, 'running')
  })

  await t.test('a coordinator that starts finds the host that is down', async (t) => {
    const { a, b, createRunningBox, getDetail, waitForState } = await startTwoHosts(t, await newDb(t))
    const id = await createRunningBox(a)
    await b.stop()
    await a.stop()
    a.infra.powerOff(id)
    t.match(await getDetail(id), { box: { observedState: 'running' } })
    await b.start()
    await waitUntil('the box is degraded', async () => (await getDetail(id)).box.observedState === 'degraded')
    await a.start()
    await waitForState(id, 'running')
    t.equal(a.infra.countCalls('start', id), 2)
  })
})
