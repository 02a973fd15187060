// Refused requests are events of the audit log, with the credential and the route, and repeated ones only once a minute.
import t from 'tap'
import { createDenials } from '../../../coordinator/audit/denials.ts'
import type { Denial } from '../../../coordinator/http/denial.ts'
import { hashSecret } from '../../../coordinator/http/hash-secret.ts'
import { startTestCoordinator } from '../../support/coordinator.ts'
import { createLimitedKey, createUserKey } from '../../support/limited-key.ts'
import { createTestSession } from '../../support/session.ts'
import { sqliteForTest } from '../../support/sqlite.ts'
import { waitUntil } from '../../support/wait-until.ts'
import { createOwner, createTestClock } from '../../support/workspace.ts'

const MINUTE_MS = 60_000

t.test('refusals over HTTP', async (t) => {
  const clock = createTestClock()
  const coordinator = await startTestCoordinator(t, { clock })
  const { api, edge, instance } = coordinator
  const { db } = instance.context
  const [box] = (await api('GET', '/boxes')).json.boxes
  let lastNo = 0
  async function readDenials(count: number) {
    const read = () => db.selectFrom('audit_log').selectAll().where('no', '>', lastNo).orderBy('no').execute()
    await waitUntil(`${count} events`, async () => (await read()).length >= count)
    const rows = await read()
    lastNo = rows.at(-1)?.no ?? lastNo
    return rows.map(({ kind, actor_kind, actor_user_id, actor_token_id, box_id, detail }) => {
      t.match({ kind, actor_kind, box_id }, { kind: 'access.denied', box_id: null })
      return { tokenId: actor_token_id, userId: actor_user_id, ...JSON.parse(detail ?? '') }
    })
  }
  const findKey = (key: string) =>
    db
      .selectFrom('api_keys')
      .select(['id', 'user_id'])
      .where('hash', '=', hashSecret(key))
      .executeTakeFirstOrThrow()
  /** Sends the request, which is refused, and returns the detail of its event. */
  async function refuse(key: string, method: string, path: string, error: string) {
    const { json } = await api(method, path, method === 'GET' ? undefined : {}, { key })
    t.equal(json.error, error, `${method} ${path}`)
    const [event] = await readDenials(1)
    const { tokenId, userId, ...detail } = event
    t.same({ id: tokenId, user_id: userId }, await findKey(key))
    return detail
  }
  lastNo = (await db.selectFrom('audit_log').select('no').orderBy('no', 'desc').executeTakeFirst())?.no ?? 0

  await t.test('name the route, the code and what is missing', async (t) => {
    const reader = await createLimitedKey(coordinator, { access: { boxes: 'read' } })
    t.same(await refuse(reader, 'POST', `/boxes/${box.id}/wake`, 'key_access_denied'), {
      ...{ method: 'POST', route: '/api/v1/boxes/{id}/wake', code: 'key_access_denied' },
      ...{ area: 'boxes', level: 'run' },
    })
    const oneBox = await createLimitedKey(coordinator, { boxIds: [box.id] })
    t.match(await refuse(oneBox, 'GET', '/workspace/policies', 'key_access_denied'), { scope: 'boxes' })
    const contractor = await createUserKey(coordinator, 'contractor')
    t.match(await refuse(contractor, 'GET', '/workspace/policies', 'not_allowed'), { code: 'not_allowed' })
    const unverified = await createLimitedKey(coordinator, { unverifiedSince: clock.now() })
    t.match(await refuse(unverified, 'GET', '/boxes', 'verification_required'), { route: '/api/v1/boxes' })
    const { status } = await edge(box.id, 'GET', '/exec', undefined, { key: unverified })
    t.equal(status, 403)
    t.match(await readDenials(1), [{ route: '/v1/box/{box}/exec', code: 'verification_required' }])
    t.match(
      await refuse(coordinator.key, 'PATCH', '/workspace/policies', 'unauthorized'),
      { code: 'unauthorized' },
      'an API key on a route for sessions',
    )
    const session = await createTestSession(coordinator, 'member')
    const body = { memberBoxLimit: 1 }
    t.equal((await api('PATCH', '/workspace/policies', body, session)).json.error, 'not_owner')
    const { userId, sessionId } = session
    t.match(await readDenials(1), [{ userId, tokenId: sessionId, code: 'not_owner' }])
  })

  await t.test('expired and revoked keys are named once a minute, whatever the route', async (t) => {
    const expired = await createLimitedKey(coordinator, { expiresAt: clock.now() })
    t.match(await refuse(expired, 'GET', '/boxes', 'token_expired'), { code: 'token_expired' })
    t.equal((await api('GET', '/me', undefined, { key: expired })).status, 401)
    const revoked = await createUserKey(coordinator, 'member')
    const { id } = await findKey(revoked)
    await db.updateTable('api_keys').set({ revoked_at: 1 }).where('id', '=', id).execute()
    t.match(await refuse(revoked, 'GET', '/boxes', 'unauthorized'), { code: 'unauthorized' })
    t.equal((await api('GET', '/me', undefined, { key: revoked })).status, 401)
    clock.advance(MINUTE_MS)
    t.match(await refuse(revoked, 'GET', '/me', 'unauthorized'), { route: '/api/v1/me' })
  })

  await t.test('a repeated refusal is recorded again after a minute', async (t) => {
    const key = await createLimitedKey(coordinator, { access: { boxes: 'read' } })
    const send = async (method: string, path: string) =>
      t.equal((await api(method, path, {}, { key })).status, 403)
    for (const _ of [1, 2, 3]) await send('POST', '/boxes')
    await send('DELETE', `/boxes/${box.id}`)
    t.match(await readDenials(2), [{ route: '/api/v1/boxes' }, { method: 'DELETE' }])
    clock.advance(MINUTE_MS - 1)
    await send('POST', '/boxes')
    clock.advance(1)
    await send('POST', '/boxes')
    const again = await readDenials(1)
    t.match(again, [{ method: 'POST' }])
    t.equal(again.length, 1)
  })

  await t.test('nothing is recorded of unknown credentials, unknown routes and other errors', async (t) => {
    const key = await createLimitedKey(coordinator, { access: { boxes: 'read' } })
    t.equal((await api('GET', '/boxes', undefined, { key: 'dcp_unknown' })).status, 401)
    t.equal((await api('GET', '/boxes', undefined, { key: null })).status, 401)
    t.equal((await api('GET', '/no-such-route', undefined, { key })).status, 404)
    t.equal((await api('GET', `/boxes/${crypto.randomUUID()}`, undefined, { key })).status, 404)
    t.equal((await api('POST', '/boxes', {}, { key })).status, 403)
    const events = await readDenials(1)
    t.match(events, [{ method: 'POST', route: '/api/v1/boxes' }])
    t.equal(events.length, 1)
  })
})

t.test('recording', async (t) => {
  const db = await sqliteForTest(t)
  const clock = createTestClock()
  const { credential, ...owner } = await createOwner(db, clock)
  const errors: object[] = []
  const log = { error: (error: object) => void errors.push(error) }
  const { record, close } = createDenials({ db, clock, log, maxRemembered: 2 })
  const denial = (route: string): Denial => ({
    identity: { ...owner, credential },
    ...{ isLive: true, method: 'GET', route, code: 'not_allowed', fields: {} },
  })

  await t.test('remembers a bounded number of refusals', async (t) => {
    for (const route of ['/a', '/b', '/a', '/c', '/b', '/a']) record(denial(route))
    await close()
    const rows = await db.selectFrom('audit_log').select('detail').orderBy('no').execute()
    const routes = rows.map(({ detail }) => JSON.parse(detail ?? '').route)
    t.same(routes, ['/a', '/b', '/c', '/a'], 'the oldest one is forgotten')
  })

  await t.test('a failure is logged', async (t) => {
    const unknown = { ...denial('/d'), identity: { ...owner, credential, workspaceId: 'ws_unknown' } }
    record(unknown)
    await close()
    t.match(errors, [{ err: Error, code: 'not_allowed' }])
  })
})
