// The snapshots that limited API keys reach.
import t from 'tap'
import { startTestCoordinator } from '../support/coordinator.ts'
import { createLimitedKey } from '../support/limited-key.ts'
import { waitUntil } from '../support/wait-until.ts'
import { createRunningBox, takeSnapshot } from './snapshots-support.ts'

t.test('a key limited to boxes reaches only their snapshots', async (t) => {
  const coordinator = await startTestCoordinator(t)
  const { api } = coordinator
  const [own, other] = [await createRunningBox(coordinator), await createRunningBox(coordinator)]
  const key = await createLimitedKey(coordinator, { boxIds: [own] })
  const ownId = await takeSnapshot(coordinator, own)
  const otherId = await takeSnapshot(coordinator, other)
  const { json } = await api('GET', '/snapshots', undefined, { key })
  t.same(
    json.snapshots.map(({ id }: { id: string }) => id),
    [ownId],
  )
  t.equal((await api('POST', '/snapshots', { boxId: own, name: 'a' }, { key })).status, 201)
  t.equal((await api('POST', '/snapshots', { boxId: other, name: 'a' }, { key })).status, 404)
  t.equal((await api('DELETE', `/snapshots/${otherId}`, undefined, { key })).status, 404)
  for (const path of [
    `/snapshots/${ownId}/restore`,
    `/snapshots/${ownId}/template`,
    `/boxes/${own}/fork`,
    `/boxes/${own}/template`,
  ])
    t.match(await api('POST', path, { name: 'plum' }, { key }), {
      status: 403,
      json: { error: 'key_access_denied', scope: 'boxes' },
    })
  const { json: deleted } = await api('DELETE', `/snapshots/${ownId}`, undefined, { key })
  await waitUntil('the key reads the completed operation', async () => {
    const { json } = await api('GET', `/operations/${deleted.operation.id}`, undefined, { key })
    return json.operation?.status === 'completed'
  })
  const { json: otherDeleted } = await api('DELETE', `/snapshots/${otherId}`)
  t.equal((await api('GET', `/operations/${otherDeleted.operation.id}`, undefined, { key })).status, 404)
})

t.test('a read-only key lists snapshots and changes nothing', async (t) => {
  const coordinator = await startTestCoordinator(t)
  const { api } = coordinator
  const boxId = await createRunningBox(coordinator)
  const id = await takeSnapshot(coordinator, boxId)
  const key = await createLimitedKey(coordinator, { access: { boxes: 'read' } })
  t.equal((await api('GET', '/snapshots', undefined, { key })).json.snapshots.length, 1)
  for (const [method, path, body] of [
    ['POST', '/snapshots', { boxId, name: 'a' }],
    ['DELETE', `/snapshots/${id}`, undefined],
    ['POST', `/snapshots/${id}/restore`, {}],
  ] as const)
    t.match(await api(method, path, body, { key }), {
      status: 403,
      json: { error: 'key_access_denied', area: 'boxes', level: 'write' },
    })
})
