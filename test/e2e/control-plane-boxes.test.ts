// The box, account and operation routes over HTTP: schemas, states and error codes.
import t from 'tap'
import { transaction } from '../../coordinator/db/transaction.ts'
import { hashSecret } from '../../coordinator/http/hash-secret.ts'
import { addApiKey } from '../../coordinator/identity/keys/keys.ts'
import { PermanentProviderError } from '../../coordinator/providers/provider.ts'
import { accountSchema } from '../../shared/api/account.ts'
import {
  boxDetailSchema,
  boxListSchema,
  boxResponseSchema,
  deleteBoxResponseSchema,
} from '../../shared/api/boxes.ts'
import { operationResponseSchema } from '../../shared/api/operations.ts'
import { startTestCoordinator } from '../support/coordinator.ts'
import { createFailingFault } from '../support/fake-infrastructure.ts'
import { createTestClock } from '../support/workspace.ts'

const UNKNOWN_ID = '0d1f6bd5-7a7e-4a52-9a3c-1f2f3c4d5e6f'

t.test('a first start creates an account and a box that reaches running', async (t) => {
  const { api, waitForState, url } = await startTestCoordinator(t)
  const me = accountSchema.parse((await api('GET', '/me')).json)
  t.equal(me.edge.url, url)
  t.equal(me.user?.role, 'owner')
  t.equal(me.boxes.length, 1)
  t.same(me.key?.boxIds, null)
  const [first] = boxListSchema.parse((await api('GET', '/boxes')).json).boxes
  t.equal((await waitForState(first?.id ?? '', 'running')).desiredState, 'running')
})

t.test('creates, suspends, wakes and deletes a box', async (t) => {
  const { api, waitForState } = await startTestCoordinator(t)
  const created = await api('POST', '/boxes', { name: 'plum', tier: 'nano', env: { A: '1' }, ttlMinutes: 5 })
  t.equal(created.status, 202)
  const { box } = boxResponseSchema.parse(created.json)
  t.match(box, {
    hostname: 'plum',
    tier: 'nano',
    observedState: 'requested',
    envVars: [{ name: 'A', value: '1' }],
  })
  await waitForState(box.id, 'running')

  const suspended = await api('POST', `/boxes/${box.id}/suspend`)
  t.equal(suspended.status, 202)
  t.equal(boxResponseSchema.parse(suspended.json).box.desiredState, 'suspended')
  await waitForState(box.id, 'suspended')
  t.equal((await api('POST', `/boxes/${box.id}/suspend`)).status, 202, 'a second suspend is not an error')
  t.equal((await api('POST', `/boxes/${box.id}/wake`)).json.box.desiredState, 'running')
  await waitForState(box.id, 'running')
  t.match(await api('POST', `/boxes/${box.id}/wake`), {
    status: 202,
    json: { box: { desiredState: 'running', observedState: 'running' } },
  })

  const detail = boxDetailSchema.parse((await api('GET', `/boxes/${box.id}`)).json)
  t.equal(detail.events.at(-1)?.toState, 'requested')
  t.equal(detail.events[0]?.toState, 'running')

  const deleted = await api('DELETE', `/boxes/${box.id}`)
  t.equal(deleted.status, 202)
  const { operation } = deleteBoxResponseSchema.parse(deleted.json)
  t.match(operation, { kind: 'box_delete', targetId: box.id, completedAt: null, error: null })
  t.equal(deleted.json.box.desiredState, 'terminated')
  t.equal((await api('DELETE', `/boxes/${box.id}`)).json.operation.id, operation.id, 'a delete is idempotent')
  await waitForState(box.id, 'terminated')
  const after = operationResponseSchema.parse((await api('GET', `/operations/${operation.id}`)).json)
  t.match(after.operation, { status: 'completed', completedAt: String, error: null })
  t.ok((await api('GET', '/boxes')).json.boxes.some(({ id }: { id: string }) => id === box.id))
  t.notOk((await api('GET', '/boxes?live=1')).json.boxes.some(({ id }: { id: string }) => id === box.id))
})

t.test('rejects an invalid create request with the code of its field', async (t) => {
  const { api } = await startTestCoordinator(t)
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
    // The body limit is 64 KiB too, so larger variables already exceed it.
    [{ env: { A: 'a'.repeat(65_000), B: 'b'.repeat(600) } }, 400, 'bad_request'],
    [{ restricted: 'yes' }, 400, 'bad_request'],
  ] as const) {
    const response = await api('POST', '/boxes', body)
    t.equal(response.json.error, code, JSON.stringify(body).slice(0, 60))
    t.equal(response.status, status)
    t.ok(response.json.message)
  }
  t.equal((await api('POST', '/boxes', { name: 'kiwi-1' })).status, 202)
  const taken = await api('POST', '/boxes', { name: 'kiwi-1' })
  t.equal(taken.status, 409)
  t.equal(taken.json.error, 'name_taken')
})

t.test('creates one box for two requests with the same Idempotency-Key', async (t) => {
  const { api } = await startTestCoordinator(t)
  const headers = { 'idempotency-key': 'once' }
  const first = await api('POST', '/boxes', {}, { headers })
  const second = await api('POST', '/boxes', {}, { headers })
  t.equal(second.headers.get('idempotent-replayed'), 'true')
  t.equal(second.text, first.text)
  t.equal((await api('POST', '/boxes', { tier: 'nano' }, { headers })).status, 422)
  t.equal((await api('GET', '/boxes')).json.boxes.length, 2)
})

t.test('responds 404 for unknown and malformed ids', async (t) => {
  const { api, edge } = await startTestCoordinator(t)
  t.equal((await edge('a%00b', 'GET', '/exec')).status, 404)
  for (const [method, path] of [
    ['GET', `/boxes/${UNKNOWN_ID}`],
    ['GET', '/boxes/apple'],
    ['DELETE', `/boxes/${UNKNOWN_ID}`],
    ['POST', `/boxes/${UNKNOWN_ID}/wake`],
    ['POST', `/boxes/${UNKNOWN_ID}/suspend`],
    ['GET', '/operations/dop_000000000000000000000000'],
    ['GET', '/operations/nonsense'],
  ] as const) {
    const response = await api(method, path)
    t.equal(response.status, 404, path)
    t.equal(response.json.error, 'not_found')
  }
  t.equal((await api('GET', '/boxes?live=yes')).json.error, 'bad_request')
  for (const query of ['deleted=1', 'deleted=1&box=fig&live=1'])
    t.match((await api('GET', `/boxes?${query}`)).json, {
      error: 'bad_request',
      message: 'deleted must be used together with box, and without live',
    })
  t.equal((await api('PUT', `/boxes/${UNKNOWN_ID}`)).headers.get('allow'), 'DELETE, GET, HEAD, PATCH')
})

t.test('responds box_failed when waking a box whose provisioning failed', async (t) => {
  const { api, waitForState, infra } = await startTestCoordinator(t)
  const [first] = (await api('GET', '/boxes')).json.boxes
  await waitForState(first.id, 'running')
  infra.before.create = createFailingFault(1, new PermanentProviderError('the disk is full'))
  const { json } = await api('POST', '/boxes', {})
  await waitForState(json.box.id, 'provision_failed')
  const wake = await api('POST', `/boxes/${json.box.id}/wake`)
  t.equal(wake.status, 409)
  t.equal(wake.json.error, 'box_failed')
})

t.test('a key limited to one box can access only that box', async (t) => {
  const { api, instance: coordinator } = await startTestCoordinator(t)
  const { context, owner } = coordinator
  const { json } = await api('POST', '/boxes', { name: 'mine' })
  const key = 'dcp_one_box'
  await transaction(context.db, (trx) =>
    addApiKey(trx, {
      workspaceId: owner?.workspaceId ?? '',
      userId: owner?.userId ?? null,
      hash: hashSecret(key),
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

t.test('a restarted coordinator keeps every box and creates no additional first box', async (t) => {
  const first = await startTestCoordinator(t)
  const { json } = await first.api('POST', '/boxes', { name: 'lasting' })
  await first.waitForState(json.box.id, 'running')
  await first.close()
  const second = await startTestCoordinator(t, { dataDir: first.dataDir, infra: first.infra })
  t.equal(second.key, first.key)
  const boxes: { hostname: string; observedState: string }[] = (await second.api('GET', '/boxes')).json.boxes
  t.equal(boxes.length, 2)
  t.match(boxes[0], { hostname: 'lasting', observedState: 'running' })
})

t.test('lists boxes by page', async (t) => {
  const clock = createTestClock()
  const { api, waitForState } = await startTestCoordinator(t, { clock })
  for (const name of ['plum', 'fig']) {
    clock.advance(1000)
    await api('POST', '/boxes', { name })
  }
  for (const { id } of (await api('GET', '/boxes')).json.boxes) await waitForState(id, 'running')
  const all = boxListSchema.parse((await api('GET', '/boxes')).json)
  t.notOk('nextBefore' in all, 'without limit the response has the form of the spec')
  t.match(all.boxes, [{ hostname: 'fig' }, { hostname: 'plum' }, {}], 'newest first')
  const first = boxListSchema.parse((await api('GET', '/boxes?limit=2')).json)
  const second = boxListSchema.parse((await api('GET', `/boxes?limit=2&before=${first.nextBefore}`)).json)
  t.same(
    [...first.boxes, ...second.boxes].map(({ id }) => id),
    all.boxes.map(({ id }) => id),
  )
  t.equal(second.nextBefore, null)
  t.same((await api('GET', `/boxes?before=${first.nextBefore}`)).json, second)
  for (const query of ['limit=0', 'limit=201'])
    t.match(await api('GET', `/boxes?${query}`), { status: 400, json: { error: 'bad_request' } })
  for (const before of ['x', '', 'x'.repeat(201)])
    t.match(await api('GET', `/boxes?before=${before}`), { status: 400, json: { error: 'invalid_cursor' } })
  const { id: deletedId } = all.boxes[0] ?? {}
  await api('DELETE', `/boxes/${deletedId}`)
  await waitForState(deletedId ?? '', 'terminated')
  for (const [live, count] of [
    ['1', 2],
    ['true', 2],
    ['0', 3],
    ['false', 3],
  ] as const)
    t.equal((await api('GET', `/boxes?live=${live}`)).json.boxes.length, count, `live=${live}`)
})
