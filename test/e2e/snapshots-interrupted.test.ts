// Snapshots that fail, are cancelled, or wait for a box, over HTTP.
import t from 'tap'
import { startTestCoordinator } from '../support/coordinator.ts'
import { createFailingFault, createHangingFault } from '../support/fake-infrastructure.ts'
import { waitUntil } from '../support/wait-until.ts'
import {
  createRunningBox,
  findSnapshot,
  takeSnapshot,
  waitForStatus,
  waitUntilAbsent,
} from './snapshots-support.ts'

const FAST = { lifecycle: { backoff: () => 1 } }

t.test('retries a failed capture; a snapshot that has failed says why and leaves nothing', async (t) => {
  const coordinator = await startTestCoordinator(t, FAST)
  const { api, infra } = coordinator
  const boxId = await createRunningBox(coordinator)
  infra.after.capture = createFailingFault(4)
  const id = await takeSnapshot(coordinator, boxId)
  t.equal(infra.countCalls('capture'), 5)

  infra.after.capture = createFailingFault(5, new Error('the disk is full'))
  const { json } = await api('POST', '/snapshots', { boxId, name: 'second' })
  t.match(await waitForStatus(coordinator, json.snapshot.id, 'failed'), { error: 'the disk is full' })
  await waitUntil('the files of the failed snapshot are removed', () => infra.archives.size === 1)
  t.match(await api('POST', `/snapshots/${json.snapshot.id}/restore`, {}), {
    status: 409,
    json: { error: 'snapshot_unavailable', message: /the disk is full/ },
  })
  t.ok(await findSnapshot(coordinator, id))
  await api('DELETE', `/snapshots/${json.snapshot.id}`)
  await waitUntilAbsent(coordinator, json.snapshot.id)
})

t.test('deleting a snapshot cancels its capture', async (t) => {
  const coordinator = await startTestCoordinator(t)
  const { api, infra } = coordinator
  const boxId = await createRunningBox(coordinator)
  const { fault, triggered } = createHangingFault()
  infra.after.capture = fault
  const { json } = await api('POST', '/snapshots', { boxId, name: 'first' })
  await triggered
  const { json: deleted } = await api('DELETE', `/snapshots/${json.snapshot.id}`)
  await waitUntil('the deletion is complete', async () => {
    const { json } = await api('GET', `/operations/${deleted.operation.id}`)
    return json.operation.status === 'completed'
  })
  t.equal(infra.archives.size, 0)
})

t.test('deleting a box aborts the capture of its files', async (t) => {
  const coordinator = await startTestCoordinator(t)
  const { api, infra, waitForState } = coordinator
  const boxId = await createRunningBox(coordinator, { name: 'fig' })
  const { fault, triggered } = createHangingFault()
  infra.after.capture = fault
  const { json } = await api('POST', '/snapshots', { boxId, name: 'first' })
  await triggered
  await api('DELETE', `/boxes/${boxId}`)
  const snapshot = await waitForStatus(coordinator, json.snapshot.id, 'failed')
  t.match(snapshot, { error: 'Box fig has been deleted. Use another box.' })
  await waitForState(boxId, 'terminated')
  await waitUntil('nothing is left', () => infra.archives.size === 0)
})

t.test('a snapshot is deleted after the boxes that are being created from it have its files', async (t) => {
  const coordinator = await startTestCoordinator(t)
  const { api, infra, waitForState } = coordinator
  const id = await takeSnapshot(coordinator, await createRunningBox(coordinator))
  const released = Promise.withResolvers<void>()
  const started = Promise.withResolvers<void>()
  infra.before.create = () => {
    started.resolve()
    return released.promise
  }
  const { json } = await api('POST', `/snapshots/${id}/restore`, {})
  await started.promise
  const { json: deleted } = await api('DELETE', `/snapshots/${id}`)
  await waitUntil('the deletion has been planned', async () => {
    const { db } = coordinator.instance.context
    return (await db.selectFrom('snapshot_jobs').selectAll().execute()).length === 1
  })
  t.equal(infra.countCalls('removeArchive'), 0)
  t.match(await api('POST', `/snapshots/${id}/restore`, {}), {
    status: 409,
    json: { error: 'snapshot_unavailable' },
  })
  released.resolve()
  await waitForState(json.box.id, 'running')
  await waitUntilAbsent(coordinator, id)
  t.match(await api('GET', `/operations/${deleted.operation.id}`), {
    json: { operation: { status: 'completed' } },
  })
})
