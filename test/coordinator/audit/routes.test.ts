// The audit log over HTTP: the form of the events, pages, CSV, reports of clients, error codes, and who may do what.
import { randomBytes } from 'node:crypto'
import t from 'tap'
import { hashSecret } from '../../../coordinator/http/hash-secret.ts'
import type { AuditEvent } from '../../../shared/api/audit.ts'
import { newId } from '../../../shared/ids.ts'
import { startVerification, verifyPage } from '../../../shared/verify-audit-chain.ts'
import { startTestCoordinator } from '../../support/coordinator.ts'
import { createLimitedKey, createUserKey } from '../../support/limited-key.ts'
import { findActorByKey } from '../../support/workspace.ts'
import { record } from './support.ts'

t.test('the audit log', async (t) => {
  const coordinator = await startTestCoordinator(t)
  const { api, instance, key } = coordinator
  const { db } = instance.context
  const actor = await findActorByKey(db, key)
  const boxId = crypto.randomUUID()
  const start = Date.UTC(2090, 0, 1)
  const first = await record(db, {
    kind: 'key.create',
    actor,
    detail: { name: 'ci', limited: false },
    at: start,
  })
  await record(db, { kind: 'box.wake', actor, boxId, at: start + 1000 })
  const last = await record(db, {
    kind: 'audit.prune',
    actor: { system: true, workspaceId: actor.workspaceId },
    at: start + 2000,
  })
  const ids = async (query: string): Promise<number[]> => {
    const { status, json, text } = await api('GET', `/audit?${query}`)
    t.equal(status, 200, text)
    return json.events.map(({ id }: AuditEvent) => id)
  }

  t.test('lists events newest first, page by page', async (t) => {
    const { json } = await api('GET', '/audit?since=2090-01-01T00:00:00Z')
    t.match(json.events, [
      { id: last, kind: 'audit.prune', actorKind: 'system', actorUserId: null, actorTokenId: null },
      { id: last - 1, kind: 'box.wake', boxId, detail: {}, at: '2090-01-01T00:00:01.000Z' },
      {
        id: first,
        kind: 'key.create',
        origin: 'server',
        actorKind: 'user',
        actorUserId: actor.userId,
        actorTokenId: actor.credential.id,
        boxId: null,
        detail: { name: 'ci', limited: false },
        hash: /^[0-9a-f]{64}$/,
      },
    ])
    t.equal(json.nextBefore, null)
    const page = (await api('GET', '/audit?limit=2')).json
    t.equal(page.nextBefore, last - 1)
    t.equal((await api('GET', `/audit?before=${page.nextBefore}&limit=1`)).json.events[0].id, first)
  })

  t.test('filters by time, kind, box, actor and origin', async (t) => {
    const seconds = start / 1000
    t.same(await ids(`since=${seconds + 1}&until=${seconds + 2}`), [last - 1], 'until is exclusive')
    t.same(await ids('since=2090-01-01T00:00:02Z'), [last], 'since is inclusive')
    t.same(await ids('kind=box.wake,audit.prune'), [last, last - 1])
    t.same(await ids(`box=${boxId}&kind=box.wake`), [last - 1])
    t.same(await ids('origin=client'), [])
    t.ok((await ids(`actor=${actor.userId}`)).includes(first))
    t.same(await ids(`box=${crypto.randomUUID()}`), [], 'an unknown box has no events')
    t.same(await ids('actor=usr_000000000000000000000000'), [], 'an unknown user has no events')
  })

  t.test('the code and message say which parameter is wrong', async (t) => {
    for (const [query, error, message] of [
      ['since=yesterday', 'invalid_time', /^since must be RFC 3339 with Z or an offset, such as/],
      ['until=2026-02-30T00:00:00Z', 'invalid_time', /^until must be/],
      ['since=20&until=10', 'invalid_time', /^since must be before until/],
      ['since=20&until=10&format=csv', 'invalid_time', /^since must be before until/],
      ['kind=box.wake,nonsense', 'invalid_kind', /^kind must be/],
      ['kind=', 'invalid_kind', /^kind must be/],
      ['box=fig', 'invalid_box', /UUID/],
      ['actor=someone', 'invalid_actor', /usr_/],
      ['origin=both', 'invalid_origin', /server, client/],
      ['before=x', 'invalid_cursor', /^before must be/],
      ['before=0', 'invalid_cursor', /^before must be/],
      ['limit=0', 'invalid_limit', /between 1 and 1000/],
      ['limit=1001', 'invalid_limit', /between 1 and 1000/],
      ['format=xml', 'invalid_format', /json, csv/],
    ] as const) {
      const { status, json } = await api('GET', `/audit?${query}`)
      t.equal(status, 400, query)
      t.match(json, { error, message }, query)
    }
  })

  t.test('owners and members read, contractors do not', async (t) => {
    const member = await createUserKey(coordinator, 'member')
    t.equal((await api('GET', '/audit', undefined, { key: member })).status, 200)
    const contractor = await createUserKey(coordinator, 'contractor')
    t.match(await api('GET', '/audit', undefined, { key: contractor }), {
      status: 403,
      json: { error: 'not_allowed' },
    })
  })

  t.test('downloads all events of the filters as CSV, and records the download', async (t) => {
    const { status, headers, text } = await api(
      'GET',
      `/audit?format=csv&since=${start / 1000}&kind=box.wake,key.create`,
    )
    t.equal(status, 200)
    t.match(headers.get('content-type'), /^text\/csv/)
    t.equal(headers.get('content-encoding'), 'gzip')
    t.match(headers.get('content-disposition'), /^attachment; filename="audit-\d{8}-\d{6}\.csv"$/)
    const lines = text.split('\r\n')
    t.match(lines, [
      /^id,at,kind,/,
      `${last - 1},2090-01-01T00:00:01.000Z,box.wake,server,user,${actor.userId},${actor.credential.id},${boxId},{}`,
      new RegExp(`^${first},.*key.create.*"{""name"":""ci"",""limited"":false}"$`),
      '',
    ])
    t.equal(lines.length, 4)
    const [recorded] = (await api('GET', '/audit?limit=1')).json.events
    t.match(recorded, {
      kind: 'audit.export',
      actorUserId: actor.userId,
      detail: { format: 'csv', since: '2090-01-01T00:00:00.000Z', kind: 'box.wake,key.create' },
    })
    t.match((await api('HEAD', '/audit?format=csv')).headers.get('content-disposition'), /^attachment/)
    t.equal((await api('GET', '/audit?limit=1')).json.events[0].id, recorded.id, 'HEAD downloads nothing')
    const part = await api('GET', `/audit?format=csv&before=${last}&limit=1`)
    t.equal(part.text.split('\r\n').length, 3, 'before and limit select a part')
    t.match(part.text, new RegExp(`\r\n${last - 1},`))
  })

  t.test('clients report what they do in a box', async (t) => {
    const box = (await api('POST', '/boxes', { name: 'fig' })).json.box.id
    const detail = { file: 'a/b', bytes: 12, ok: true, error: null }
    const { status, json } = await api('POST', '/audit', { kind: 'file.upload', boxId: box, detail })
    t.equal(status, 201)
    t.match((await api('GET', `/audit?box=${box}&origin=client`)).json.events, [
      {
        id: json.id,
        kind: 'file.upload',
        origin: 'client',
        actorKind: 'user',
        actorUserId: actor.userId,
        detail,
      },
    ])

    const report = { kind: 'exec', boxId: box }
    t.equal((await api('POST', '/audit', report)).status, 201, 'detail is optional')
    const limits = {
      ...Object.fromEntries(Array.from({ length: 15 }, (_, i) => [`k${i}`, i])),
      ['k'.repeat(40)]: 'v'.repeat(512),
    }
    t.equal((await api('POST', '/audit', { ...report, detail: limits })).status, 201)
    for (const [body, error, message] of [
      [{ ...report, kind: 'box.delete' }, 'invalid_kind', /^kind must be one of exec, file.upload/],
      [{ boxId: box }, 'invalid_kind', /^kind is required/],
      [{ kind: 'exec' }, 'bad_request', /^boxId is required/],
      [{ ...report, detail: { ...limits, one: 'more' } }, 'bad_request', /at most 16/],
      [{ ...report, detail: { ['k'.repeat(41)]: 1 } }, 'bad_request', /at most 40/],
      [{ ...report, detail: { k: 'v'.repeat(513) } }, 'bad_request', /^detail/],
      [{ ...report, detail: { k: {} } }, 'bad_request', /^detail/],
      [{ ...report, detail: { k: [1] } }, 'bad_request', /^detail/],
      [`{"kind":"exec","boxId":"${box}","detail":{"k":1e999}}`, 'bad_request', /^detail/],
      [{ ...report, detail: 'text' }, 'bad_request', /^detail/],
      [{ ...report, padding: 'x'.repeat(64 * 1024) }, 'bad_request', /64 KiB|larger|65536/],
    ] as const) {
      const { status, json } = await api('POST', '/audit', body, {
        headers: { 'content-type': 'application/json' },
      })
      t.match({ status, json }, { status: 400, json: { error, message } }, JSON.stringify(body).slice(0, 100))
    }

    const readOnly = await createLimitedKey(coordinator, { access: { boxes: 'read', workspace: 'read' } })
    t.match(await api('POST', '/audit', report, { key: readOnly }), {
      status: 403,
      json: { error: 'key_access_denied', area: 'boxes', level: 'run' },
    })
    t.match(await api('POST', '/audit', report, { key: 'dcm_0123456789' }), {
      status: 403,
      json: { error: 'not_allowed' },
    })
    const contractor = await createUserKey(coordinator, 'contractor')
    const otherKey = await createLimitedKey(coordinator, { boxIds: [crypto.randomUUID()] })
    for (const options of [{ key: contractor }, { key: otherKey }])
      t.match(await api('POST', '/audit', report, options), { status: 404, json: { error: 'not_found' } })
    for (const unknown of [crypto.randomUUID(), 'fig', ''])
      t.match(await api('POST', '/audit', { ...report, boxId: unknown }), { status: 404 }, unknown)

    const ownTicket = await createTicket(box)
    t.equal((await api('POST', '/audit', report, { key: ownTicket })).status, 201)
    t.match((await api('GET', '/audit?limit=1')).json.events, [
      { actorKind: 'ticket', actorUserId: actor.userId },
    ])
    const ticket = await createTicket((await api('POST', '/boxes', { name: 'plum' })).json.box.id)
    t.match(await api('POST', '/audit', report, { key: ticket }), {
      status: 404,
      json: { error: 'not_found' },
    })

    await api('DELETE', `/boxes/${box}`)
    t.match(await api('POST', '/audit', report), { status: 404, json: { error: 'not_found' } })
    t.ok((await ids(`box=${box}&kind=exec`)).length > 0, 'the history of a deleted box stays readable')
  })

  t.test('the details of reports are not stored under zero data retention', async (t) => {
    const box = (await api('POST', '/boxes', { name: 'fig' })).json.box.id
    await db.updateTable('workspaces').set({ zero_data_retention: 1 }).execute()
    await api('POST', '/audit', { kind: 'prompt', boxId: box, detail: { text: 'private' } })
    await db.updateTable('workspaces').set({ zero_data_retention: 0 }).execute()
    t.match((await api('GET', '/audit?limit=1')).json.events, [{ kind: 'prompt', detail: {} }])
    t.notMatch(JSON.stringify(await db.selectFrom('audit_log').selectAll().execute()), /private/)
  })

  async function createTicket(boxId: string): Promise<string> {
    const secret = `dct_${randomBytes(16).toString('hex')}`
    const [now, sessionId] = [Date.now(), newId('session')]
    const common = { workspace_id: actor.workspaceId, user_id: actor.userId ?? '' }
    const times = { created_at: now, expires_at: now + 60_000 }
    await db
      .insertInto('sessions')
      .values({
        ...{ ...common, ...times, id: sessionId, hash: sessionId, last_used_at: now },
        ...{ user_agent: null, address: null },
      })
      .execute()
    await db
      .insertInto('tickets')
      .values({
        ...{ ...common, ...times, id: newId('ticket'), hash: hashSecret(secret) },
        ...{ box_id: boxId, session_id: sessionId },
      })
      .execute()
    return secret
  }

  t.test('the hash chain of all events is intact, and a change in the database is detected', async (t) => {
    const verify = async () => {
      let state = startVerification()
      for (let after = 0; !state.isComplete; ) {
        const { json } = await api('GET', `/audit/chain?after=${after}&limit=2`)
        state = verifyPage(state, json)
        after = json.next
      }
      return state
    }
    const { json } = await api('GET', '/audit?limit=1')
    const [newest] = json.events
    t.match(await verify(), { problem: null, head: { id: newest.id, hash: newest.hash }, events: newest.id })
    t.match((await api('GET', '/audit/chain?after=999999')).json, { events: [], next: null })
    await db
      .updateTable('audit_log')
      .set({ kind: 'box.delete' })
      .where('no', '=', first + 1)
      .execute()
    t.match((await verify()).problem, { id: first + 1, message: /hash of event/ })
    await db.deleteFrom('audit_log').where('no', '>', first).execute()
    t.match((await verify()).problem, { id: first + 1, message: /are missing/ })
    for (const [query, error] of [
      ['after=x', 'invalid_cursor'],
      ['limit=1001', 'invalid_limit'],
    ] as const)
      t.match(await api('GET', `/audit/chain?${query}`), { status: 400, json: { error } })
  })
})
