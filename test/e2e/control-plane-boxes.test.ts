// The control plane's routes over real HTTP: shapes, states, and each code that these routes answer with.
import t from 'tap'
import { addKey, hashOf } from '../../coordinator/account/keys.ts'
import { transaction } from '../../coordinator/db/transaction.ts'
import { PermanentProviderError } from '../../coordinator/lifecycle/provider.ts'
import { account } from '../../shared/api/account.ts'
import { boxAnswer, boxDeleted, boxDetail, boxList } from '../../shared/api/boxes.ts'
import { operationAnswer } from '../../shared/api/operations.ts'
import { testCoordinator } from '../support/coordinator.ts'
import { failing } from '../support/fake-provider.ts'

const NOBODY = '0d1f6bd5-7a7e-4a52-9a3c-1f2f3c4d5e6f'

t.test('a first start has a box that comes to run, and an account', async (t) => {
  const { api, until, url } = await testCoordinator(t)
  const me = account.parse((await api('GET', '/me')).json)
  t.equal(me.edge.url, url)
  t.equal(me.user?.role, 'owner')
  t.equal(me.boxes.length, 1)
  t.same(me.key.boxIds, null)
  const [first] = boxList.parse((await api('GET', '/boxes')).json).boxes
  t.equal((await until(first?.id ?? '', 'running')).desiredState, 'running')
})

t.test('a box is created, suspended, woken and deleted', async (t) => {
  const { api, until } = await testCoordinator(t)
  const created = await api('POST', '/boxes', { name: 'plum', tier: 'nano', env: { A: '1' }, ttlMinutes: 5 })
  t.equal(created.status, 202)
  const { box } = boxAnswer.parse(created.json)
  t.match(box, {
    hostname: 'plum',
    tier: 'nano',
    observedState: 'requested',
    envVars: [{ name: 'A', value: '1' }],
  })
  await until(box.id, 'running')

  const suspended = await api('POST', `/boxes/${box.id}/suspend`)
  t.equal(suspended.status, 202)
  t.equal(boxAnswer.parse(suspended.json).box.desiredState, 'suspended')
  await until(box.id, 'suspended')
  t.equal((await api('POST', `/boxes/${box.id}/suspend`)).status, 202, 'again is no error')
  t.equal((await api('POST', `/boxes/${box.id}/wake`)).json.box.desiredState, 'running')
  await until(box.id, 'running')

  const detail = boxDetail.parse((await api('GET', `/boxes/${box.id}`)).json)
  t.equal(detail.events.at(-1)?.toState, 'requested')
  t.equal(detail.events[0]?.toState, 'running')

  const deleted = await api('DELETE', `/boxes/${box.id}`)
  t.equal(deleted.status, 202)
  const { operation } = boxDeleted.parse(deleted.json)
  t.equal(operation.kind, 'box_delete')
  t.equal((await api('DELETE', `/boxes/${box.id}`)).json.operation.id, operation.id, 'a delete is idempotent')
  await until(box.id, 'terminated')
  const after = operationAnswer.parse((await api('GET', `/operations/${operation.id}`)).json)
  t.equal(after.operation.status, 'completed')
  t.ok((await api('GET', '/boxes')).json.boxes.some(({ id }: { id: string }) => id === box.id))
  t.notOk((await api('GET', '/boxes?live=1')).json.boxes.some(({ id }: { id: string }) => id === box.id))
})

t.test('a create that is off says how', async (t) => {
  const { api } = await testCoordinator(t)
  const many = Object.fromEntries(Array.from({ length: 101 }, (_, index) => [`V${index}`, '']))
  for (const [body, status, code] of [
    [{ name: 'Bad_Name' }, 400, 'invalid_name'],
    [{ name: '-a' }, 400, 'invalid_name'],
    [{ name: 'a'.repeat(33) }, 400, 'invalid_name'],
    [{ tier: 'huge' }, 400, 'invalid_tier'],
    [{ region: 'mars' }, 400, 'invalid_region'],
    [{ region: 'us-east-1', fromTemplate: 'x' }, 400, 'invalid_region'],
    [{ fromTemplate: 'x', fromSnapshotId: 'snp_1' }, 400, 'invalid_template'],
    [{ fromTemplate: 'x' }, 404, 'not_found'],
    [{ environment: 'x' }, 404, 'not_found'],
    [{ ttlMinutes: 4 }, 400, 'invalid_pause_at'],
    [{ ttlMinutes: 5.5 }, 400, 'invalid_pause_at'],
    [{ autoPauseMin: 29 }, 400, 'invalid_auto_pause'],
    [{ env: { '1A': 'x' } }, 400, 'invalid_env'],
    [{ env: { A: 1 } }, 400, 'invalid_env'],
    [{ env: many }, 400, 'invalid_env'],
    // 64 KiB of variables do not fit into a body of 64 KiB: the cap on the body speaks first.
    [{ env: { A: 'a'.repeat(65_000), B: 'b'.repeat(600) } }, 400, 'bad_request'],
    [{ restricted: 'yes' }, 400, 'bad_request'],
  ] as const) {
    const answer = await api('POST', '/boxes', body)
    t.equal(answer.json.error, code, JSON.stringify(body).slice(0, 60))
    t.equal(answer.status, status)
    t.ok(answer.json.message)
  }
  t.equal((await api('POST', '/boxes', { name: 'kiwi-1' })).status, 202)
  const taken = await api('POST', '/boxes', { name: 'kiwi-1' })
  t.equal(taken.status, 409)
  t.equal(taken.json.error, 'name_taken')
})

t.test('a create sent twice with one Idempotency-Key makes one box', async (t) => {
  const { api } = await testCoordinator(t)
  const headers = { 'idempotency-key': 'once' }
  const first = await api('POST', '/boxes', {}, { headers })
  const second = await api('POST', '/boxes', {}, { headers })
  t.equal(second.headers.get('idempotent-replayed'), 'true')
  t.equal(second.text, first.text)
  t.equal((await api('POST', '/boxes', { tier: 'nano' }, { headers })).status, 422)
  t.equal((await api('GET', '/boxes')).json.boxes.length, 2)
})

t.test('what is not there is not found', async (t) => {
  const { api } = await testCoordinator(t)
  for (const [method, path] of [
    ['GET', `/boxes/${NOBODY}`],
    ['GET', '/boxes/apple'],
    ['DELETE', `/boxes/${NOBODY}`],
    ['POST', `/boxes/${NOBODY}/wake`],
    ['POST', `/boxes/${NOBODY}/suspend`],
    ['GET', '/operations/dop_000000000000000000000000'],
    ['GET', '/operations/nonsense'],
  ] as const) {
    const answer = await api(method, path)
    t.equal(answer.status, 404, path)
    t.equal(answer.json.error, 'not_found')
  }
  t.equal((await api('GET', '/boxes?live=yes')).json.error, 'bad_request')
  t.equal((await api('PUT', `/boxes/${NOBODY}`)).headers.get('allow'), 'DELETE, GET')
})

t.test('a box that could not be made answers box_failed', async (t) => {
  const { api, until, world } = await testCoordinator(t)
  world.before.create = failing(1, new PermanentProviderError('no room'))
  const { json } = await api('POST', '/boxes', {})
  await until(json.box.id, 'provision_failed')
  const wake = await api('POST', `/boxes/${json.box.id}/wake`)
  t.equal(wake.status, 409)
  t.equal(wake.json.error, 'box_failed')
})

t.test('a key limited to one box sees that box alone', async (t) => {
  const { api, coordinator } = await testCoordinator(t)
  const { context, owner } = coordinator
  const { json } = await api('POST', '/boxes', { name: 'mine' })
  const key = 'dcp_one_box'
  await transaction(context.db, (trx) =>
    addKey(trx, {
      workspaceId: owner?.workspaceId ?? '',
      userId: owner?.userId ?? null,
      hash: hashOf(key),
      now: Date.now(),
      boxIds: [json.box.id],
    }),
  )
  t.same(
    (await api('GET', '/boxes', undefined, { key })).json.boxes.map(
      (box: { hostname: string }) => box.hostname,
    ),
    ['mine'],
  )
  t.match((await api('POST', '/boxes', {}, { key })).json, { error: 'key_access_denied', scope: 'boxes' })
  t.equal((await api('GET', '/me', undefined, { key })).json.billing, null)
})

t.test(
  'a coordinator started again on its data knows every box, and makes no second first one',
  async (t) => {
    const first = await testCoordinator(t)
    const { json } = await first.api('POST', '/boxes', { name: 'kept' })
    await first.until(json.box.id, 'running')
    await first.close()
    const second = await testCoordinator(t, { dataDir: first.dataDir, world: first.world })
    t.equal(second.key, first.key)
    const boxes: { hostname: string; observedState: string }[] = (await second.api('GET', '/boxes')).json
      .boxes
    t.equal(boxes.length, 2)
    t.match(boxes[0], { hostname: 'kept', observedState: 'running' })
  },
)
