// Snapshots over HTTP: take, list, restore, delete, and the error codes of these routes.
import t from 'tap'
import { PermanentProviderError } from '../../coordinator/providers/provider.ts'
import { createProviders } from '../../coordinator/providers/regions.ts'
import { startTestCoordinator } from '../support/coordinator.ts'
import { createHangingFault, FakeInfrastructure } from '../support/fake-infrastructure.ts'
import { createRunningBox, takeSnapshot, waitForStatus, waitUntilAbsent } from './snapshots-support.ts'

const FAST = { lifecycle: { backoff: () => 1 } }

t.test('takes a snapshot, restores it to a new box, and deletes it', async (t) => {
  const coordinator = await startTestCoordinator(t)
  const { api, infra, waitForState } = coordinator
  const boxId = await createRunningBox(coordinator, { name: 'fig', tier: 'nano', env: { A: '1' } })
  infra.setFiles(boxId, 'some files')

  const { status, json } = await api('POST', '/snapshots', {
    boxId,
    name: 'before-upgrade',
    description: 'v1',
  })
  t.equal(status, 201)
  t.match(json.snapshot, {
    ...{ id: /^snp_/, name: 'before-upgrade', description: 'v1', status: 'creating', kind: 'manual' },
    ...{ templateName: null, expiresAt: null, boxId, sourceBoxHostname: 'fig', tier: 'nano' },
    ...{ region: 'us-west-2', sizeGb: null, pausedMs: null, error: null },
  })
  const { id } = json.snapshot
  t.match(await waitForStatus(coordinator, id, 'available'), { sizeGb: 10 / 1e9, pausedMs: 1 })

  const restored = await api('POST', `/snapshots/${id}/restore`, { name: 'plum', tier: 'micro' })
  t.equal(restored.status, 202)
  t.match(restored.json.box, {
    ...{ hostname: 'plum', tier: 'micro', region: 'us-west-2', observedState: 'requested' },
    envVars: [{ name: 'A', value: '1' }],
  })
  await waitForState(restored.json.box.id, 'running')
  t.equal(infra.machines.get(restored.json.box.id)?.files, 'some files')

  const deleted = await api('DELETE', `/snapshots/${id}`)
  t.equal(deleted.status, 202)
  t.match(deleted.json, {
    snapshot: { id, status: 'deleting' },
    operation: { kind: 'snapshot_delete', targetId: id, status: 'pending' },
  })
  await waitUntilAbsent(coordinator, id)
  t.equal(infra.archives.size, 0)
  const again = await api('DELETE', `/snapshots/${id}`)
  t.match(again, { status: 202, json: { operation: { id: deleted.json.operation.id, status: 'completed' } } })
  t.match(await api('GET', `/operations/${deleted.json.operation.id}`), {
    json: { operation: { status: 'completed', error: null } },
  })
  t.match(await api('POST', `/snapshots/${id}/restore`, {}), {
    status: 409,
    json: { error: 'snapshot_unavailable' },
  })
})

t.test('lists snapshots newest first, also of a deleted box', async (t) => {
  const coordinator = await startTestCoordinator(t)
  const { api, waitForState } = coordinator
  const boxId = await createRunningBox(coordinator)
  const first = await takeSnapshot(coordinator, boxId, 'first')
  const second = await takeSnapshot(coordinator, boxId, 'second')
  await api('DELETE', `/boxes/${boxId}`)
  await waitForState(boxId, 'terminated')
  const { json } = await api('GET', '/snapshots')
  t.same(
    json.snapshots.map(({ id }: { id: string }) => id),
    [second, first],
  )
  const { json: restored } = await api('POST', `/snapshots/${second}/restore`, {})
  await waitForState(restored.box.id, 'running')
})

t.test('creates a box from a snapshot with POST /boxes', async (t) => {
  const coordinator = await startTestCoordinator(t)
  const { api, infra, waitForState } = coordinator
  const boxId = await createRunningBox(coordinator, {
    region: 'eu-central-1',
    tier: 'micro',
    restricted: true,
    env: { A: '1' },
  })
  infra.setFiles(boxId, 'content')
  const fromSnapshotId = await takeSnapshot(coordinator, boxId)
  const { status, json } = await api('POST', '/boxes', { fromSnapshotId, env: { B: '2' }, restricted: false })
  t.equal(status, 202)
  t.match(json.box, {
    ...{ observedState: 'requested', tier: 'micro', region: 'eu-central-1', restricted: true },
    envVars: [{ name: 'B', value: '2' }],
  })
  await waitForState(json.box.id, 'running')
  t.equal(infra.machines.get(json.box.id)?.files, 'content')
})

t.test('refuses requests that break a rule', async (t) => {
  const coordinator = await startTestCoordinator(t)
  const { api, infra } = coordinator
  const unknownBox = crypto.randomUUID()
  const boxId = await createRunningBox(coordinator, { name: 'fig' })
  const { fault, triggered } = createHangingFault()
  infra.before.capture = fault
  const { json: creating } = await api('POST', '/snapshots', { boxId, name: 'creating' })
  await triggered
  delete infra.before.capture
  const id = await takeSnapshot(coordinator, await createRunningBox(coordinator))

  const cases: [method: string, path: string, body: object, status: number, error: string][] = [
    ['POST', '/snapshots', { boxId, name: '-a' }, 400, 'invalid_name'],
    ['POST', '/snapshots', { boxId, name: 'a'.repeat(65) }, 400, 'invalid_name'],
    ['POST', '/snapshots', { boxId, name: 'a/b' }, 400, 'invalid_name'],
    ['POST', '/snapshots', { boxId }, 400, 'invalid_name'],
    ['POST', '/snapshots', { name: 'a' }, 400, 'bad_request'],
    ['POST', '/snapshots', { boxId, name: 'a', description: 'a'.repeat(501) }, 400, 'bad_request'],
    ['POST', '/snapshots', { boxId, name: 'a', description: 'a\0' }, 400, 'bad_request'],
    ['POST', '/snapshots', { boxId: unknownBox, name: 'a' }, 404, 'not_found'],
    ['POST', '/snapshots', { boxId: 'fig', name: 'a' }, 404, 'not_found'],
    ['POST', `/snapshots/${id}/restore`, { name: 'Plum' }, 400, 'invalid_name'],
    ['POST', `/snapshots/${id}/restore`, { name: 'fig' }, 409, 'name_taken'],
    ['POST', `/snapshots/${id}/restore`, { tier: 'huge' }, 400, 'invalid_tier'],
    ['POST', '/snapshots/snp_000/restore', {}, 404, 'not_found'],
    ['POST', '/snapshots/..%2f/restore', {}, 404, 'not_found'],
    ['DELETE', '/snapshots/snp_000', {}, 404, 'not_found'],
    ['POST', '/boxes', { fromSnapshotId: id, region: 'us-west-2' }, 400, 'invalid_region'],
    ['POST', '/boxes', { fromSnapshotId: id, fromTemplate: 'a' }, 400, 'invalid_template'],
    ['POST', '/boxes', { fromSnapshotId: 'snp_000' }, 404, 'not_found'],
    ['POST', '/boxes', { fromTemplate: 'a\0' }, 404, 'not_found'],
    ['POST', `/snapshots/${creating.snapshot.id}/template`, { name: 'a' }, 409, 'snapshot_in_progress'],
  ]
  for (const [method, path, body, status, error] of cases)
    t.match(
      await api(method, path, body),
      { status, json: { error } },
      `${method} ${path} ${JSON.stringify(body)}`,
    )
  // Cancels the capture.
  await api('DELETE', `/snapshots/${creating.snapshot.id}`)
  await waitUntilAbsent(coordinator, creating.snapshot.id)
})

t.test('refuses a snapshot of a box without files', async (t) => {
  const coordinator = await startTestCoordinator(t, FAST)
  const { api, infra, waitForState } = coordinator
  const expectNoVolume = async (boxId: string, message: RegExp) =>
    t.match(await api('POST', '/snapshots', { boxId, name: 'a' }), {
      status: 409,
      json: { error: 'no_volume', message },
    })

  const provisioning = Promise.withResolvers<void>()
  infra.before.create = () => provisioning.promise
  const { json } = await api('POST', '/boxes', {})
  await expectNoVolume(json.box.id, /has no files yet. Try again/)
  provisioning.resolve()
  infra.before.create = () => {
    throw new PermanentProviderError('no space')
  }
  const { json: failed } = await api('POST', '/boxes', {})
  await waitForState(failed.box.id, 'provision_failed')
  await expectNoVolume(failed.box.id, /could not be created. Delete it/)
  delete infra.before.create
  const boxId = await createRunningBox(coordinator)
  await api('DELETE', `/boxes/${boxId}`)
  const deleted = { status: 404, json: { error: 'not_found', message: /has been deleted/ } }
  t.match(await api('POST', '/snapshots', { boxId, name: 'a' }), deleted)
  t.match(await api('POST', `/boxes/${boxId}/fork`, {}), deleted)
  t.match(await api('POST', `/boxes/${boxId}/template`, { name: 'a' }), deleted)
})

t.test('refuses a copy in a region that is not served any more', async (t) => {
  const infra = new FakeInfrastructure()
  const providers = createProviders(new Map([['us-west-2' as const, infra.provider]]))
  const coordinator = await startTestCoordinator(t, { infra, providers })
  const { api, instance } = coordinator
  const { db } = instance.context
  const boxId = await createRunningBox(coordinator)
  const id = await takeSnapshot(coordinator, boxId)
  await db.updateTable('snapshots').set({ region: 'eu-central-1' }).execute()
  await db.updateTable('boxes').set({ region: 'eu-central-1' }).where('id', '=', boxId).execute()
  for (const [path, body] of [
    [`/snapshots/${id}/restore`, {}],
    ['/boxes', { fromSnapshotId: id }],
    [`/boxes/${boxId}/fork`, {}],
  ] as const)
    t.match(
      await api('POST', path, body),
      { status: 400, json: { error: 'invalid_region', message: /does not serve eu-central-1/ } },
      path,
    )
  t.equal((await api('GET', '/snapshots?transient=1')).json.snapshots.length, 1, 'nothing is written')
  await db.updateTable('boxes').set({ region: 'us-west-2' }).where('id', '=', boxId).execute()
})

t.test('refuses a tier whose disk is smaller than the files', async (t) => {
  const coordinator = await startTestCoordinator(t)
  const { api, instance } = coordinator
  const id = await takeSnapshot(coordinator, await createRunningBox(coordinator, { tier: 'lite' }))
  await instance.context.db.updateTable('snapshots').set({ content_bytes: 10_000_000_001 }).execute()
  const expected = {
    status: 403,
    json: { error: 'restore_tier_not_allowed', message: /10\.0 GB.*tier nano has 10 GB/ },
  }
  t.match(await api('POST', `/snapshots/${id}/restore`, { tier: 'nano' }), expected)
  t.match(await api('POST', '/boxes', { fromSnapshotId: id, tier: 'nano' }), expected)
  t.equal((await api('POST', `/snapshots/${id}/restore`, { tier: 'micro' })).status, 202)
})

t.test('limits the snapshots of a workspace, without failed ones', async (t) => {
  const coordinator = await startTestCoordinator(t, { ...FAST, env: { BOXWOOD_SNAPSHOT_LIMIT: '2' } })
  const { api, infra } = coordinator
  const boxId = await createRunningBox(coordinator)
  infra.before.capture = () => {
    throw new PermanentProviderError('no space')
  }
  const { json: failed } = await api('POST', '/snapshots', { boxId, name: 'failed' })
  t.match(await waitForStatus(coordinator, failed.snapshot.id, 'failed'), { error: 'no space', sizeGb: null })
  delete infra.before.capture
  const first = await takeSnapshot(coordinator, boxId)
  const requests = Array.from({ length: 5 }, () => api('POST', '/snapshots', { boxId, name: 'a' }))
  const statuses = (await Promise.all(requests)).map(({ status }) => status).sort()
  t.same(statuses, [201, 429, 429, 429, 429])
  t.match(await api('POST', '/snapshots', { boxId, name: 'a' }), {
    status: 429,
    json: { error: 'snapshot_limit', limit: 2 },
  })
  await api('DELETE', `/snapshots/${first}`)
  t.equal(
    (await api('POST', '/snapshots', { boxId, name: 'a' })).status,
    201,
    'a deleted snapshot does not count',
  )
})

t.test('a repeated request with an Idempotency-Key takes one snapshot', async (t) => {
  const coordinator = await startTestCoordinator(t)
  const { api } = coordinator
  const boxId = await createRunningBox(coordinator)
  const headers = { 'idempotency-key': 'one' }
  const first = await api('POST', '/snapshots', { boxId, name: 'a' }, { headers })
  const second = await api('POST', '/snapshots', { boxId, name: 'a' }, { headers })
  t.equal(second.headers.get('idempotent-replayed'), 'true')
  t.same(second.json, first.json)
  const { snapshot } = first.json
  await waitForStatus(coordinator, snapshot.id, 'available')
  const countBoxes = async () => (await api('GET', '/boxes')).json.boxes.length
  const before = await countBoxes()
  const restores = [1, 2].map(() => api('POST', `/snapshots/${snapshot.id}/restore`, {}, { headers }))
  const statuses = (await Promise.all(restores)).map(({ status }) => status)
  t.ok(statuses.includes(202))
  t.ok(statuses.every((status) => status === 202 || status === 409))
  t.equal(await countBoxes(), before + 1)
  t.equal((await api('GET', '/snapshots')).json.snapshots.length, 1)
})
