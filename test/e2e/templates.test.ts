// Templates over HTTP: snapshots with a name from which boxes are created.
import t from 'tap'
import { transaction } from '../../coordinator/db/transaction.ts'
import { hashSecret } from '../../coordinator/http/hash-secret.ts'
import { addApiKey } from '../../coordinator/identity/keys/keys.ts'
import { PermanentProviderError } from '../../coordinator/providers/provider.ts'
import { newApiKey } from '../../shared/api-key.ts'
import { newId } from '../../shared/ids.ts'
import { startTestCoordinator, type TestCoordinator } from '../support/coordinator.ts'
import { createRunningBox, findSnapshot, takeSnapshot, waitForStatus } from './snapshots-support.ts'

/** Adds a contractor with a key to the workspace of the owner. Returns the key. */
async function addContractor({ instance }: TestCoordinator): Promise<string> {
  const { db, clock } = instance.context
  const workspaceId = instance.owner?.workspaceId ?? ''
  const [id, key, now] = [newId('user'), newApiKey(), clock.now()]
  const row = {
    id,
    workspace_id: workspaceId,
    email: null,
    name: 'c',
    role: 'contractor' as const,
    created_at: now,
  }
  await transaction(db, async (trx) => {
    await trx.insertInto('users').values(row).execute()
    await addApiKey(trx, { workspaceId, userId: id, hash: hashSecret(key), now })
  })
  return key
}

t.test('takes a template of a box, and creates boxes from it', async (t) => {
  const coordinator = await startTestCoordinator(t)
  const { api, infra, waitForState } = coordinator
  const boxId = await createRunningBox(coordinator, { name: 'fig', tier: 'nano' })
  infra.setFiles(boxId, 'content')
  const released = Promise.withResolvers<void>()
  infra.before.capture = () => released.promise
  const { status, json } = await api('POST', `/boxes/${boxId}/template`, {
    name: 'base',
    description: 'tools',
  })
  t.equal(status, 201)
  t.match(json.snapshot, { name: 'base', description: 'tools', templateName: 'base', kind: 'template' })
  t.match(await api('POST', '/boxes', { fromTemplate: 'base' }), {
    status: 409,
    json: { error: 'snapshot_in_progress' },
  })
  const early = await api('POST', '/boxes', { fromSnapshotId: json.snapshot.id })
  t.match(early, { status: 202, json: { box: { observedState: 'requested' } } })
  released.resolve()
  await waitForStatus(coordinator, json.snapshot.id, 'available')
  await waitForState(early.json.box.id, 'running')
  t.equal(infra.machines.get(early.json.box.id)?.files, 'content', 'the box has waited for the files')
  const created = await api('POST', '/boxes', { fromTemplate: 'base', name: 'plum', tier: 'micro' })
  t.equal(created.status, 202)
  t.match(created.json.box, { hostname: 'plum', tier: 'micro' })
  await waitForState(created.json.box.id, 'running')
  t.equal(infra.machines.get(created.json.box.id)?.files, 'content')
})

t.test('a name moves from one snapshot to another, and can be removed', async (t) => {
  const coordinator = await startTestCoordinator(t)
  const { api } = coordinator
  const boxId = await createRunningBox(coordinator)
  const first = await takeSnapshot(coordinator, boxId, 'first')
  const second = await takeSnapshot(coordinator, boxId, 'second')
  const name = (id: string, templateName = 'base') =>
    api('POST', `/snapshots/${id}/template`, { name: templateName })
  t.match(await name(first), {
    status: 200,
    json: { snapshot: { id: first, name: 'first', templateName: 'base', kind: 'template' }, previous: null },
  })
  t.match(await name(first), { status: 200, json: { snapshot: { id: first }, previous: null } })
  t.match(await name(second), {
    json: {
      snapshot: { id: second, templateName: 'base' },
      previous: { id: first, templateName: null, kind: 'manual' },
    },
  })
  t.match(await name(second, 'other'), { json: { snapshot: { templateName: 'other' }, previous: null } })
  t.equal((await api('POST', '/boxes', { fromTemplate: 'base' })).status, 404)
  const removed = await api('DELETE', `/snapshots/${second}/template`)
  t.match(removed, { status: 200, json: { snapshot: { id: second, templateName: null, kind: 'manual' } } })
  t.same((await api('DELETE', `/snapshots/${second}/template`)).json, removed.json)
  t.match(await api('POST', '/boxes', { fromTemplate: 'other' }), {
    status: 404,
    json: { error: 'not_found' },
  })
})

t.test('a new template takes the name of an earlier one', async (t) => {
  const coordinator = await startTestCoordinator(t)
  const { api } = coordinator
  const boxId = await createRunningBox(coordinator)
  const take = async () => (await api('POST', `/boxes/${boxId}/template`, { name: 'base' })).json.snapshot.id
  const first = await take()
  const second = await take()
  await waitForStatus(coordinator, second, 'available')
  t.match(await waitForStatus(coordinator, first, 'available'), {
    templateName: null,
    kind: 'manual',
    name: 'base',
  })
})

t.test('a template that could not be taken cannot be used', async (t) => {
  const coordinator = await startTestCoordinator(t)
  const { api, infra } = coordinator
  const boxId = await createRunningBox(coordinator)
  infra.before.capture = () => {
    throw new PermanentProviderError('the disk is full')
  }
  const { json } = await api('POST', `/boxes/${boxId}/template`, { name: 'base' })
  await waitForStatus(coordinator, json.snapshot.id, 'failed')
  const unavailable = { status: 409, json: { error: 'snapshot_unavailable', message: /the disk is full/ } }
  t.match(await api('POST', '/boxes', { fromTemplate: 'base' }), unavailable)
  t.match(await api('POST', `/snapshots/${json.snapshot.id}/template`, { name: 'other' }), unavailable)
})

t.test('a template that is being deleted cannot be used', async (t) => {
  const coordinator = await startTestCoordinator(t)
  const { api, infra } = coordinator
  const boxId = await createRunningBox(coordinator)
  const id = await takeSnapshot(coordinator, boxId)
  await api('POST', `/snapshots/${id}/template`, { name: 'base' })
  const released = Promise.withResolvers<void>()
  infra.before.removeArchive = () => released.promise
  await api('DELETE', `/snapshots/${id}`)
  for (const [path, body] of [
    ['/boxes', { fromTemplate: 'base' }],
    [`/snapshots/${id}/template`, { name: 'base' }],
  ] as const)
    t.match(await api('POST', path, body), { status: 409, json: { error: 'snapshot_unavailable' } })
  released.resolve()
})

t.test('refuses invalid names of templates', async (t) => {
  const coordinator = await startTestCoordinator(t)
  const { api } = coordinator
  const boxId = await createRunningBox(coordinator)
  const id = await takeSnapshot(coordinator, boxId)
  for (const name of ['', '.a', 'a.', 'a b', 'ä', 'a'.repeat(65), 7, undefined])
    for (const path of [`/boxes/${boxId}/template`, `/snapshots/${id}/template`])
      t.match(
        await api('POST', path, { name }),
        { status: 400, json: { error: 'invalid_template' } },
        `${name}`,
      )
  t.match(await api('POST', '/boxes', { fromTemplate: 7 }), {
    status: 400,
    json: { error: 'invalid_template' },
  })
  t.equal((await api('POST', '/boxes', { fromTemplate: 'none' })).status, 404)
  t.equal((await api('POST', '/snapshots/snp_000/template', { name: 'a' })).status, 404)
  t.equal((await api('DELETE', '/snapshots/snp_000/template')).status, 404)
  t.equal((await api('POST', `/boxes/${crypto.randomUUID()}/template`, { name: 'a' })).status, 404)
})

t.test('contractors reach only the snapshots and templates of their own boxes', async (t) => {
  const coordinator = await startTestCoordinator(t)
  const { api, waitForState } = coordinator
  const key = await addContractor(coordinator)
  const boxId = await createRunningBox(coordinator)
  const ownerSnapshot = await takeSnapshot(coordinator, boxId)
  await api('POST', `/snapshots/${ownerSnapshot}/template`, { name: 'base' })

  const { json: own } = await api('POST', '/boxes', {}, { key })
  await waitForState(own.box.id, 'running')
  const { json: taken } = await api('POST', '/snapshots', { boxId: own.box.id, name: 'mine' }, { key })
  const { id } = taken.snapshot
  await waitForStatus(coordinator, id, 'available')

  const { json } = await api('GET', '/snapshots', undefined, { key })
  t.same(
    json.snapshots.map((snapshot: { id: string }) => snapshot.id),
    [id],
  )
  for (const [method, path, body] of [
    ['POST', '/snapshots', { boxId, name: 'a' }],
    ['DELETE', `/snapshots/${ownerSnapshot}`, undefined],
    ['POST', `/snapshots/${ownerSnapshot}/restore`, {}],
    ['POST', '/boxes', { fromSnapshotId: ownerSnapshot }],
    ['POST', '/boxes', { fromTemplate: 'base' }],
    ['POST', `/boxes/${boxId}/fork`, {}],
  ] as const)
    t.equal((await api(method, path, body, { key })).status, 404, `${method} ${path}`)
  for (const path of [`/snapshots/${id}/template`, `/boxes/${own.box.id}/template`])
    t.match(await api('POST', path, { name: 'base' }, { key }), {
      status: 403,
      json: { error: 'not_allowed' },
    })
  t.match(await findSnapshot(coordinator, ownerSnapshot), { templateName: 'base' })

  const { json: restored } = await api('POST', `/snapshots/${id}/restore`, {}, { key })
  t.match(restored.box, { restricted: true })
  const { json: deleted } = await api('DELETE', `/snapshots/${id}`, undefined, { key })
  const readOperation = () => api('GET', `/operations/${deleted.operation.id}`, undefined, { key })
  t.equal((await readOperation()).status, 200)
  const { json: other } = await api('DELETE', `/snapshots/${ownerSnapshot}`)
  t.equal((await api('GET', `/operations/${other.operation.id}`, undefined, { key })).status, 404)
})
