// The routes of API keys, as a user of the dashboard and the owner of a workspace use them.
import t from 'tap'
import { hashSecret } from '../../../../coordinator/http/hash-secret.ts'
import { isApiKey } from '../../../../shared/api-key-checksum.ts'
import { startTestCoordinator } from '../../../support/coordinator.ts'
import { createTestSession } from '../../../support/session.ts'

const DAY_MS = 24 * 60 * 60_000
const COORDINATOR = await startTestCoordinator(t)

t.test('API keys', async (t) => {
  const { api, edge, key: ownerKey, instance } = COORDINATOR
  const { db, clock } = instance.context
  const owner = await createTestSession(COORDINATOR)
  const member = await createTestSession(COORDINATOR, 'member')
  const contractor = await createTestSession(COORDINATOR, 'contractor')
  const mint = async (body: object, session = owner) => {
    const response = await api('POST', '/keys', { name: 'test', ...body }, session)
    if (response.status !== 201) throw new Error(response.text)
    return response.json
  }
  const getMe = (key: string) => api('GET', '/me', undefined, { key })
  const listIds = async (session = owner, query = '') => {
    const { json } = await api('GET', `/keys${query}`, undefined, session)
    return json.keys.map(({ id }: { id: string }) => id)
  }
  const readEvents = async () =>
    (await db.selectFrom('audit_log').select(['kind', 'detail']).orderBy('no').execute()).filter(({ kind }) =>
      kind.startsWith('key.'),
    )

  await t.test('a new key works, and its secret is in one response only', async (t) => {
    const created = await api('POST', '/keys', { name: ' ci ' }, owner)
    t.equal(created.status, 201)
    const { key, secret } = created.json
    t.ok(isApiKey(secret))
    t.match(key, {
      id: /^key_/,
      name: 'ci',
      kind: 'api',
      userId: owner.userId,
      ending: secret.slice(-4),
      lastUsedAt: null,
      expiresAt: null,
      boxIds: null,
      access: null,
      revokedAt: null,
    })
    t.match((await getMe(secret)).json, { key: { id: key.id, kind: 'api', expiresAt: null, boxIds: null } })
    const later = [
      await api('GET', '/keys', undefined, owner),
      await api('GET', `/keys/${key.id}`, undefined, owner),
      await api('PATCH', `/keys/${key.id}`, { name: 'CI' }, owner),
    ]
    for (const { status, text } of later) {
      t.equal(status, 200)
      t.notMatch(text, secret)
    }
    const tables = [
      await db.selectFrom('api_keys').selectAll().execute(),
      await db.selectFrom('audit_log').selectAll().execute(),
    ]
    t.notMatch(JSON.stringify(tables), secret, 'neither the database nor the audit log has the secret')
    t.match((await api('GET', '/keys', undefined, owner)).json.keys, [
      { name: 'CI' },
      { name: 'owner key', ending: ownerKey.slice(-4) },
    ])
  })

  await t.test('keys cannot manage keys', async (t) => {
    const { id } = (await mint({})).key
    for (const [method, path, body] of [
      ['GET', '/keys'],
      ['POST', '/keys', { name: 'x' }],
      ['GET', `/keys/${id}`],
      ['PATCH', `/keys/${id}`, { name: 'x' }],
      ['POST', `/keys/${id}/rotate`],
      ['DELETE', `/keys/${id}`],
    ] as const)
      t.match(await api(method, path, body), { status: 401, json: { error: 'unauthorized' } })
  })

  await t.test('a member manages only own keys, an owner all', async (t) => {
    const own = (await mint({}, member)).key.id
    const ofOwner = (await mint({})).key.id
    const withoutUser = (await mint({ user: null })).key.id
    t.same(await listIds(member), [own])
    t.same((await listIds()).slice(0, 3).sort(), [own, ofOwner, withoutUser].sort())
    for (const id of [ofOwner, withoutUser, 'key_unknown', '%00', 'x'])
      for (const [method, path, body] of [
        ['GET', ''],
        ['PATCH', '', { name: 'mine' }],
        ['POST', '/rotate'],
        ['DELETE', ''],
      ] as const)
        t.match(await api(method, `/keys/${id}${path}`, body, member), {
          status: 404,
          json: { error: 'not_found' },
        })
    t.match(await api('POST', '/keys', { name: 'x', user: null }, member), {
      status: 403,
      json: { error: 'not_owner' },
    })
    t.match(await api('PATCH', `/keys/${own}`, { name: 'renamed' }, owner), {
      json: { key: { name: 'renamed' } },
    })
    t.equal((await api('DELETE', `/keys/${own}`, undefined, member)).status, 204)
    t.same(await listIds(member), [])
    t.same(await listIds(member, '?revoked=1'), [own])
  })

  await t.test('lists keys by page', async (t) => {
    await mint({}, contractor)
    await mint({}, contractor)
    const all = await listIds(contractor)
    const first = (await api('GET', '/keys?limit=1', undefined, contractor)).json
    const second = (await api('GET', `/keys?limit=1&before=${first.nextBefore}`, undefined, contractor)).json
    t.same(
      [...first.keys, ...second.keys].map(({ id }) => id),
      all,
    )
    t.equal(second.nextBefore, null)
    t.match(await api('GET', '/keys?before=x', undefined, contractor), {
      status: 400,
      json: { error: 'invalid_cursor' },
    })
  })

  await t.test('a limited key does what its limits allow', async (t) => {
    const fig = (await api('POST', '/boxes', { name: 'fig' })).json.box.id
    const plum = (await api('POST', '/boxes', { name: 'plum' })).json.box.id
    const { key, secret } = await mint({ access: 'read', boxIds: [plum, fig, plum] })
    t.same(key.boxIds, [fig, plum].sort())
    t.same(key.access, { boxes: 'read', workspace: 'read' })
    t.match((await getMe(secret)).json, {
      key: { boxIds: key.boxIds },
      access: { boxes: 'read', workspace: 'read' },
    })
    t.match(await api('POST', `/boxes/${fig}/suspend`, {}, { key: secret }), {
      status: 403,
      json: { error: 'key_access_denied', area: 'boxes', level: 'write' },
    })
    await api('PATCH', `/keys/${key.id}`, { boxIds: [plum], access: { boxes: 'run' } }, owner)
    t.match((await getMe(secret)).json.access, { boxes: 'run', workspace: 'none' })
    t.equal((await api('POST', `/boxes/${plum}/wake`, {}, { key: secret })).status, 202)
    for (const [method, path, body] of [
      ['DELETE', `/boxes/${plum}`],
      ['POST', `/boxes/${plum}/suspend`],
      ['POST', `/boxes/${plum}/resize`, { target_tier: 'micro' }],
      ['PATCH', `/boxes/${plum}`, { autoPauseMin: 30 }],
    ] as const)
      t.match(await api(method, path, body, { key: secret }), {
        status: 403,
        json: {
          area: 'boxes',
          level: 'write',
          message: /lacks write access to boxes, needed to create, change/,
        },
      })
    await api('PATCH', `/keys/${key.id}`, { boxIds: [plum], access: { boxes: 'write' } }, owner)
    t.equal((await api('POST', `/boxes/${plum}/suspend`, {}, { key: secret })).status, 202)
    t.equal((await api('GET', `/boxes/${fig}`, undefined, { key: secret })).status, 404)
    t.match((await api('PATCH', `/keys/${key.id}`, { boxIds: null, access: null }, owner)).json.key, {
      boxIds: null,
      access: null,
    })
    t.equal((await api('GET', `/boxes/${fig}`, undefined, { key: secret })).status, 200)

    await api('DELETE', `/boxes/${fig}`)
    const foreign = '11111111-2222-4333-8444-555555555555'
    for (const boxIds of [[fig], [plum, foreign], ['plum'], ['\0']]) {
      const denied = { status: 404, json: { error: 'not_found' } }
      t.match(await api('POST', '/keys', { name: 'x', boxIds }, owner), denied, JSON.stringify(boxIds))
      t.match(await api('PATCH', `/keys/${key.id}`, { boxIds }, owner), denied)
    }
    t.match(await api('POST', '/keys', { name: 'x', boxIds: [plum] }, contractor), { status: 404 })
    const ofContractor = (await mint({}, contractor)).key.id
    t.match(
      await api('PATCH', `/keys/${ofContractor}`, { boxIds: [plum] }, owner),
      { status: 404 },
      'the contractor does not own the box',
    )
  })

  await t.test('rejects invalid fields, and fields that it does not know', async (t) => {
    const { id } = (await mint({})).key
    const machine = (await mint({ kind: 'machine' })).key.id
    const past = new Date(clock.now() - 1000).toISOString()
    const future = new Date(clock.now() + DAY_MS).toISOString()
    const far = new Date(clock.now() + 3651 * DAY_MS).toISOString()
    const tooMany = Array.from({ length: 101 }, () => '11111111-2222-4333-8444-555555555555')
    const cases: [string, unknown, RegExp][] = [
      ['POST', {}, /^name is required/],
      ['POST', { name: ' ' }, /^name must be 1 to 64 characters/],
      ['POST', { name: 'x'.repeat(65) }, /^name must be 1 to 64 characters/],
      ['POST', { name: 'a\u001b[31m' }, /^name must be 1 to 64 characters without control characters/],
      ['POST', { name: 'x', kind: 'owner' }, /^kind must be one of api, machine/],
      ['POST', { name: 'x', boxIDs: [] }, /^unknown field boxIDs/],
      ['POST', { name: 'x', user: 'usr_1' }, /^user must be null/],
      ['POST', { name: 'x', boxIds: [] }, /^boxIds must have 1 to 100 items/],
      ['POST', { name: 'x', boxIds: tooMany }, /^boxIds must have 1 to 100 items/],
      ['POST', { name: 'x', access: 'write' }, /^access must be "read", or a level/],
      ['POST', { name: 'x', access: {} }, /^access must be "read", or a level/],
      ['POST', { name: 'x', access: { boxes: 'none' } }, /^access must be "read", or a level/],
      ['POST', { name: 'x', access: { workspace: 'run' } }, /^access must be "read", or a level/],
      ['POST', { name: 'x', access: { secrets: 'read' } }, /^unknown field access.secrets/],
      ['POST', { name: 'x', expiresAt: past }, /^expiresAt must be in the future/],
      ['POST', { name: 'x', expiresAt: far }, /^expiresAt must be in the future and at most 3650 days away/],
      ['POST', { name: 'x', expiresInDays: 0 }, /^expiresInDays must be an integer between 1 and 3650/],
      ['POST', { name: 'x', expiresInDays: 1, expiresAt: future }, /must not be given together/],
      ['POST', { name: 'x', kind: 'machine', expiresInDays: 1 }, /expiry of a machine key cannot be set/],
      ['PATCH', {}, /at least one field/],
      ['PATCH', { kind: 'machine' }, /^unknown field kind/],
      ['PATCH', { name: null }, /^name must be a string/],
      ['PATCH', { expiresAt: past }, /^expiresAt must be in the future/],
      ['PATCH machine', { expiresAt: future }, /expiry of a machine key cannot be set/],
    ]
    for (const [method, body, message] of cases) {
      const path = method === 'POST' ? '/keys' : `/keys/${method === 'PATCH' ? id : machine}`
      const response = await api(method.slice(0, 5).trim(), path, body, owner)
      t.match(response, { status: 400, json: { error: 'bad_request', message } }, JSON.stringify(body))
    }
  })

  await t.test('an expired key is rejected with the instant everywhere, and stays expired', async (t) => {
    const { key, secret } = await mint({ expiresInDays: 1 })
    t.equal(Date.parse(key.expiresAt) - Date.parse(key.createdAt), DAY_MS)
    t.equal((await getMe(secret)).json.key.expiresAt, key.expiresAt, 'GET /me reports the expiry')
    const instant = clock.now() - 1
    await db.updateTable('api_keys').set({ expires_at: instant }).where('id', '=', key.id).execute()
    const expiresAt = new Date(instant).toISOString()
    const expired = { error: 'token_expired', expiresAt }
    for (const path of ['/me', '/boxes', '/keys', '/unknown'])
      t.match(await api('GET', path, undefined, { key: secret }), { status: 401, json: expired }, path)
    t.match(await edge('plum', 'POST', '/exec', { command: 'true' }, { key: secret }), {
      status: 401,
      json: { error: { code: 'token_expired', expiresAt } },
    })
    t.ok((await listIds()).includes(key.id), 'the list has expired keys')
    for (const [method, path, body] of [
      ['PATCH', '', { expiresAt: null }],
      ['POST', '/rotate'],
    ] as const)
      t.match(await api(method, `/keys/${key.id}${path}`, body, owner), {
        status: 404,
        json: { error: 'not_found', message: /has expired/ },
      })
    t.equal((await api('DELETE', `/keys/${key.id}`, undefined, owner)).status, 204)
  })

  await t.test('a revoked key stops at its next request, and stays revoked', async (t) => {
    const { key, secret } = await mint({})
    t.equal((await getMe(secret)).status, 200)
    t.equal((await api('DELETE', `/keys/${key.id}`, undefined, owner)).status, 204)
    t.match(await getMe(secret), { status: 401, json: { error: 'unauthorized' } })
    t.match(await edge('plum', 'GET', '/exec', undefined, { key: secret }), { status: 401 })
    t.equal((await api('DELETE', `/keys/${key.id}`, undefined, owner)).status, 204, 'again')
    t.notOk((await listIds()).includes(key.id))
    t.ok((await listIds(owner, '?revoked=1')).includes(key.id))
    t.type((await api('GET', `/keys/${key.id}`, undefined, owner)).json.key.revokedAt, 'string')
    for (const [method, path, body] of [
      ['PATCH', '', { name: 'x' }],
      ['POST', '/rotate'],
    ] as const)
      t.match(await api(method, `/keys/${key.id}${path}`, body, owner), {
        status: 404,
        json: { message: /has been revoked/ },
      })
  })

  await t.test('rotating a key replaces its secret at once and keeps its limits', async (t) => {
    const { key, secret } = await mint({ access: 'read', expiresInDays: 10 })
    const rotated = await api('POST', `/keys/${key.id}/rotate`, undefined, owner)
    t.equal(rotated.status, 200)
    t.not(rotated.json.secret, secret)
    t.same(rotated.json.key, { ...key, ending: rotated.json.secret.slice(-4) })
    t.match(await getMe(secret), { status: 401, json: { error: 'unauthorized' } })
    t.match((await getMe(rotated.json.secret)).json, { key: { id: key.id } })
  })

  await t.test('a session and a key of one user are the same member to Idempotency-Key', async (t) => {
    const { boxes } = (await api('GET', '/boxes?live=1')).json
    const plum = boxes.find(({ hostname }: { hostname: string }) => hostname === 'plum').id
    const full = (await mint({})).secret
    const limited = (await mint({ boxIds: [plum] })).secret
    const headers = { 'idempotency-key': 'from-both' }
    const body = { boxId: plum, name: 'both' }
    await COORDINATOR.waitForState(plum, 'suspended')
    const first = await api('POST', '/snapshots', body, { key: full, headers })
    t.equal(first.status, 201)
    const bySession = { key: null, headers: { ...owner.headers, ...headers } }
    const again = await api('POST', '/snapshots', body, bySession)
    t.same([again.status, again.text], [first.status, first.text])
    t.equal(again.headers.get('idempotent-replayed'), 'true')
    t.match(
      await api('POST', '/snapshots', body, { key: limited, headers }),
      { status: 422, json: { error: 'idempotency_key_reused' } },
      'a key with another box scope is not',
    )
  })

  await t.test('the audit log records each change, and by whom', async (t) => {
    const { key } = await mint({ name: 'deploy', access: { boxes: 'read' } }, member)
    await api('PATCH', `/keys/${key.id}`, { name: 'deploy 2' }, owner)
    t.match(
      await api('POST', `/keys/${key.id}/rotate`, undefined, owner),
      { status: 403, json: { error: 'not_allowed' } },
      'an owner cannot get a secret that acts as another user',
    )
    await api('POST', `/keys/${key.id}/rotate`, undefined, member)
    for (const session of [member, owner]) await api('DELETE', `/keys/${key.id}`, undefined, session)
    const events = (await readEvents()).filter(({ detail }) => detail?.includes(key.id))
    t.same(
      events.map(({ kind }) => kind),
      ['key.create', 'key.update', 'key.rotate', 'key.revoke'],
    )
    t.same(JSON.parse(events[0]?.detail ?? ''), {
      keyId: key.id,
      name: 'deploy',
      kind: 'api',
      userId: member.userId,
      expiresAt: null,
      boxIds: null,
      access: '{"boxes":"read","workspace":"none"}',
    })
  })

  await t.test('a machine key expires 90 days after its last use', async (t) => {
    const { key, secret } = await mint({ kind: 'machine' })
    const getDaysLeft = (expiresAt: string) => Math.round((Date.parse(expiresAt) - clock.now()) / DAY_MS)
    t.equal(getDaysLeft(key.expiresAt), 90)
    const soon = clock.now() + DAY_MS
    await db.updateTable('api_keys').set({ expires_at: soon }).where('id', '=', key.id).execute()
    const { json } = await getMe(secret)
    t.match(json.key, { kind: 'machine' })
    t.equal(getDaysLeft(json.key.expiresAt), 90, 'a request moves the expiry')
    await instance.context.keyUses.flush()
    const { json: stored } = await api('GET', `/keys/${key.id}`, undefined, owner)
    t.equal(getDaysLeft(stored.key.expiresAt), 90)
    t.type(stored.key.lastUsedAt, 'string')
    await db.updateTable('api_keys').set({ expires_at: soon }).where('id', '=', key.id).execute()
    const rotated = (await api('POST', `/keys/${key.id}/rotate`, undefined, owner)).json.key
    t.equal(getDaysLeft(rotated.expiresAt), 90, 'a rotation starts the time again')
    t.equal(rotated.lastUsedAt, null)
  })

  await t.test('a key of an earlier version works, and a mistyped key is recognised', async (t) => {
    const { secret } = await mint({})
    const [last] = secret.slice(-5)
    const mistyped = `${secret.slice(0, -5)}${last === 'A' ? 'B' : 'A'}${secret.slice(-4)}`
    t.match(await getMe(mistyped), { status: 401, json: { error: 'unauthorized', message: /typing error/ } })
    t.match(
      await edge('plum', 'POST', '/exec', { command: 'true' }, { key: mistyped }),
      { status: 401, json: { error: { code: 'unauthorized', message: /typing error/ } } },
      'on the edge too',
    )
    const earlier = `dcp_${'0123456789abcdef'.repeat(3)}`
    const { id } = (await mint({})).key
    await db
      .updateTable('api_keys')
      .set({ hash: hashSecret(earlier) })
      .where('id', '=', id)
      .execute()
    t.match((await getMe(earlier)).json, { key: { id } })
  })

  await t.test('a closing workspace gets no new keys, but can revoke keys', async (t) => {
    const { key, secret } = await mint({})
    await db.updateTable('workspaces').set({ closing_at: 1, purge_after: 2 }).execute()
    t.match(await api('POST', '/keys', { name: 'x' }, owner), {
      status: 409,
      json: { error: 'workspace_closing' },
    })
    t.match((await getMe(secret)).json.customer, { status: 'closing' })
    t.equal((await api('DELETE', `/keys/${key.id}`, undefined, owner)).status, 204)
    await db.updateTable('workspaces').set({ closing_at: null, purge_after: null }).execute()
  })

  await t.test('the last use of a key, and its revocation, survive a restart', async (t) => {
    const used = await mint({})
    const revoked = await mint({})
    t.equal((await getMe(used.secret)).status, 200)
    await api('DELETE', `/keys/${revoked.key.id}`, undefined, owner)
    await COORDINATOR.close()
    const { dataDir, infra } = COORDINATOR
    const restarted = await startTestCoordinator(t, { dataDir, infra })
    const { json } = await restarted.api('GET', `/keys/${used.key.id}`, undefined, owner)
    t.type(json.key.lastUsedAt, 'string')
    const sendMe = (key: string) => restarted.api('GET', '/me', undefined, { key })
    t.equal((await sendMe(used.secret)).status, 200)
    t.equal((await sendMe(revoked.secret)).status, 401)
  })
})
