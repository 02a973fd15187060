// Forks over HTTP: POST /boxes/{id}/fork and the copy that it makes.
import t from 'tap'
import { PermanentProviderError } from '../../coordinator/providers/provider.ts'
import { startTestCoordinator } from '../support/coordinator.ts'
import { createHangingFault } from '../support/fake-infrastructure.ts'
import { waitUntil } from '../support/wait-until.ts'
import { createRunningBox, findSnapshot, waitUntilAbsent } from './snapshots-support.ts'

const FAST = { lifecycle: { backoff: () => 1 } }

t.test('forks a box, and deletes the copy when the new box has its files', async (t) => {
  const coordinator = await startTestCoordinator(t)
  const { api, infra, waitForState } = coordinator
  const boxId = await createRunningBox(coordinator, { name: 'fig', region: 'us-east-1', env: { A: '1' } })
  infra.setFiles(boxId, 'content')
  const { status, json } = await api('POST', `/boxes/${boxId}/fork`, { name: 'plum' })
  t.equal(status, 202)
  t.match(json, {
    box: { hostname: 'plum', region: 'us-east-1', tier: 'lite', envVars: [{ name: 'A', value: '1' }] },
    snapshot: { kind: 'fork', status: 'creating', name: /^fig-fork-\d{8}T\d{6}Z$/, boxId },
  })
  const { createdAt, expiresAt } = json.snapshot
  t.equal(Date.parse(expiresAt) - Date.parse(createdAt), 24 * 60 * 60 * 1000)
  await waitForState(json.box.id, 'running')
  t.equal(infra.machines.get(json.box.id)?.files, 'content')
  await waitUntilAbsent(coordinator, json.snapshot.id)
  t.equal(infra.archives.size, 0)
})

t.test('the list contains the copy of a fork only with transient=1', async (t) => {
  const coordinator = await startTestCoordinator(t)
  const { api, infra, waitForState } = coordinator
  const boxId = await createRunningBox(coordinator)
  const released = Promise.withResolvers<void>()
  infra.before.capture = () => released.promise
  const { json } = await api('POST', `/boxes/${boxId}/fork`, {})
  t.ok(await findSnapshot(coordinator, json.snapshot.id))
  t.same((await api('GET', '/snapshots')).json.snapshots, [])
  t.match(await api('POST', `/snapshots/${json.snapshot.id}/template`, { name: 'base' }), {
    status: 409,
    json: { error: 'snapshot_unavailable' },
  })
  t.match(await api('GET', `/boxes/${json.box.id}`), {
    json: { box: { observedState: 'requested' }, job: { op: 'create', attempt: 0 } },
  })
  released.resolve()
  await waitForState(json.box.id, 'running')
})

t.test('keepSnapshot keeps the copy', async (t) => {
  const coordinator = await startTestCoordinator(t, { env: { BOXWOOD_SNAPSHOT_LIMIT: '1' } })
  const { api, waitForState } = coordinator
  const boxId = await createRunningBox(coordinator)
  const { json } = await api('POST', `/boxes/${boxId}/fork`, { keepSnapshot: true, tier: 'nano' })
  t.match(json, { box: { tier: 'nano' }, snapshot: { kind: 'fork', expiresAt: null } })
  await waitForState(json.box.id, 'running')
  const { snapshots } = (await api('GET', '/snapshots')).json
  t.match(snapshots, [{ id: json.snapshot.id, status: 'available', kind: 'fork' }])
  const fork = () => api('POST', `/boxes/${boxId}/fork`, { keepSnapshot: true })
  t.match(await fork(), { status: 429, json: { error: 'snapshot_limit', limit: 1 } })
  t.equal((await api('POST', `/boxes/${boxId}/fork`, {})).status, 202, 'a copy does not count')
})

t.test('a fork whose copy fails ends in provision_failed and leaves nothing', async (t) => {
  const coordinator = await startTestCoordinator(t, FAST)
  const { api, infra, waitForState } = coordinator
  const boxId = await createRunningBox(coordinator, { name: 'fig' })
  infra.after.capture = () => {
    throw new PermanentProviderError('the disk is full')
  }
  const { json } = await api('POST', `/boxes/${boxId}/fork`, {})
  await waitForState(json.box.id, 'provision_failed')
  const { events } = (await api('GET', `/boxes/${json.box.id}`)).json
  t.equal(events[0].reason, 'The files of fig could not be copied: the disk is full')
  await waitUntilAbsent(coordinator, json.snapshot.id)
  t.equal(infra.archives.size, 0)
})

t.test('a fork whose source is deleted before the copy is complete fails', async (t) => {
  const coordinator = await startTestCoordinator(t)
  const { api, infra, waitForState } = coordinator
  const boxId = await createRunningBox(coordinator, { name: 'fig' })
  const { fault, triggered } = createHangingFault()
  infra.before.capture = fault
  const { json } = await api('POST', `/boxes/${boxId}/fork`, {})
  await triggered
  await api('DELETE', `/boxes/${boxId}`)
  await waitForState(json.box.id, 'provision_failed')
  await waitUntilAbsent(coordinator, json.snapshot.id)
})

t.test('deleting a fork before it has its files deletes the copy', async (t) => {
  const coordinator = await startTestCoordinator(t)
  const { api, infra, waitForState } = coordinator
  const boxId = await createRunningBox(coordinator)
  const released = Promise.withResolvers<void>()
  infra.before.capture = () => released.promise
  const { json } = await api('POST', `/boxes/${boxId}/fork`, {})
  await api('DELETE', `/boxes/${json.box.id}`)
  await waitForState(json.box.id, 'terminated')
  released.resolve()
  await waitUntilAbsent(coordinator, json.snapshot.id)
  t.equal(infra.archives.size, 0)
})

t.test('a copy that a client deletes is removed after the fork', async (t) => {
  const coordinator = await startTestCoordinator(t)
  const { api, infra, waitForState } = coordinator
  const boxId = await createRunningBox(coordinator)
  const released = Promise.withResolvers<void>()
  infra.before.capture = () => released.promise
  const { json } = await api('POST', `/boxes/${boxId}/fork`, {})
  const { json: deleted } = await api('DELETE', `/snapshots/${json.snapshot.id}`)
  released.resolve()
  await waitForState(json.box.id, 'running')
  await waitUntil('the deletion is complete', async () => {
    const { json } = await api('GET', `/operations/${deleted.operation.id}`)
    return json.operation.status === 'completed'
  })
  t.equal(infra.archives.size, 0)
})

t.test('the files of a fork must fit on its disk', async (t) => {
  const coordinator = await startTestCoordinator(t)
  const { api, infra, instance, waitForState } = coordinator
  const { db } = instance.context
  const boxId = await createRunningBox(coordinator, { tier: 'lite' })
  const vitals = {
    cpu_pct: 0,
    mem_pct: 0,
    disk_pct: 50,
    idle_for_sec: 0,
    listeners_count: 0,
    agent_version: '1',
  }
  await db
    .updateTable('boxes')
    .set({ vitals: JSON.stringify(vitals), machine: JSON.stringify({ diskBytes: 40e9 }) })
    .where('id', '=', boxId)
    .execute()
  const fork = () => api('POST', `/boxes/${boxId}/fork`, { tier: 'nano' })
  t.match(await fork(), { status: 403, json: { error: 'restore_tier_not_allowed', message: /20\.0 GB/ } })
  // The last heartbeat did not have the current size.
  await db.updateTable('boxes').set({ vitals: null }).where('id', '=', boxId).execute()
  infra.contentBytes = 20e9
  const { json } = await fork()
  await waitForState(json.box.id, 'provision_failed')
  const { events } = (await api('GET', `/boxes/${json.box.id}`)).json
  t.match(events[0].reason, /The files need 20\.0 GB, and the disk of tier nano has 10 GB/)
  await waitUntilAbsent(coordinator, json.snapshot.id)
})

t.test('refuses forks that break a rule', async (t) => {
  const coordinator = await startTestCoordinator(t, FAST)
  const { api, infra, waitForState } = coordinator
  const boxId = await createRunningBox(coordinator, { name: 'fig' })
  infra.before.create = () => {
    throw new PermanentProviderError('no space')
  }
  const { json: failed } = await api('POST', '/boxes', {})
  await waitForState(failed.box.id, 'provision_failed')
  const cases: [id: string, body: object, status: number, error: string][] = [
    [boxId, { name: 'fig' }, 409, 'name_taken'],
    [boxId, { name: '-' }, 400, 'invalid_name'],
    [boxId, { tier: 'huge' }, 400, 'invalid_tier'],
    [boxId, { keepSnapshot: 'yes' }, 400, 'bad_request'],
    [crypto.randomUUID(), {}, 404, 'not_found'],
    ['fig', {}, 404, 'not_found'],
    [failed.box.id, {}, 409, 'no_volume'],
  ]
  for (const [id, body, status, error] of cases)
    t.match(await api('POST', `/boxes/${id}/fork`, body), { status, json: { error } }, JSON.stringify(body))
  t.same((await api('GET', '/snapshots?transient=1')).json.snapshots, [], 'nothing has been written')
})

t.test('50 equal forks at once make one box', async (t) => {
  const coordinator = await startTestCoordinator(t)
  const { api, waitForState } = coordinator
  const boxId = await createRunningBox(coordinator)
  const countBoxes = async () => (await api('GET', '/boxes')).json.boxes.length
  const before = await countBoxes()
  const headers = { 'idempotency-key': 'one' }
  const fork = () => api('POST', `/boxes/${boxId}/fork`, {}, { headers })
  const responses = await Promise.all(Array.from({ length: 50 }, fork))
  t.ok(responses.every(({ status }) => status === 202 || status === 409))
  const { json } = await fork()
  await waitForState(json.box.id, 'running')
  t.equal(await countBoxes(), before + 1)
  await waitUntilAbsent(coordinator, json.snapshot.id)
})
