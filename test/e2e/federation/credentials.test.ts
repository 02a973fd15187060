// The credentials that boxes get: which boxes, when, and what AWS accepts before and after a rotation of the keys.
import { decodeJwt, decodeProtectedHeader, SignJWT } from 'jose'
import { pino } from 'pino'
import t, { type Test } from 'tap'
import { transaction } from '../../../coordinator/db/transaction.ts'
import { recordAccessChange } from '../../../coordinator/http/access-changes.ts'
import { ApiError } from '../../../shared/errors.ts'
import { newId } from '../../../shared/ids.ts'
import { createTestSession } from '../../support/session.ts'
import { waitUntil } from '../../support/wait-until.ts'
import { AUDIENCE, DAY_MS, type Federation, HOUR_MS, ISSUER, startFederation, toRoleArn } from './support.ts'

const NONE = { token: null, profiles: [] }

/** Exchanges the token, as a program on a box does. @returns the error code of STS; null: it got credentials */
async function assumeRole({ sts }: Federation, token: string, roleArn = toRoleArn('deploy')) {
  const body = new URLSearchParams({
    Action: 'AssumeRoleWithWebIdentity',
    Version: '2011-06-15',
    RoleArn: roleArn,
    RoleSessionName: 'boxwood-fig',
    WebIdentityToken: token,
  })
  await fetch(sts.url, { method: 'POST', body })
  return sts.calls.at(-1)?.error
}

async function requireToken(federation: Federation, boxId = federation.box.id): Promise<string> {
  const { token } = (await federation.readCredentials(boxId)) ?? {}
  if (!token) throw new Error('the box has no token')
  return token.content
}

const connect = async ({ api, addRole }: Federation) =>
  (await api('POST', '/aws-roles', { roleArn: addRole('deploy') })).json.role.id as string

/** An idle box connects again. */
async function reconnect({ infra }: Federation, boxId: string): Promise<void> {
  infra.dropTunnel(boxId)
  infra.connectAgent(boxId)
}

t.test('a connected box gets a token, which is replaced at half of its life', async (t) => {
  const federation = await startFederation(t)
  const { box, credentials, readCredentials, advance, freeze, workspaceId, now, api, infra } = federation
  t.same(await readCredentials(box.id), NONE, 'before there is a role')
  freeze()
  const roleId = await connect(federation)
  t.match(await readCredentials(box.id), {
    profiles: [{ name: 'default', roleArn: toRoleArn('deploy'), roleSessionName: `boxwood-${box.hostname}` }],
  })
  const first = await requireToken(federation)
  t.match(decodeProtectedHeader(first), { alg: 'RS256', kid: /^[\w-]{43}$/, typ: 'JWT' })
  const claims = decodeJwt(first)
  t.match(claims, {
    iss: ISSUER,
    sub: `workspace:${workspaceId}:box:${box.id}`,
    aud: AUDIENCE,
    workspace_id: workspaceId,
    box_id: box.id,
    jti: /^[0-9a-f-]{36}$/,
  })
  t.same(Object.keys(claims).sort(), [
    'aud',
    'box_id',
    'exp',
    'iat',
    'iss',
    'jti',
    'nbf',
    'sub',
    'workspace_id',
  ])
  t.equal((claims.exp ?? 0) - (claims.iat ?? 0), 3600)
  t.equal(claims.nbf, claims.iat)
  t.equal(claims.iat, Math.floor(now() / 1000))

  const count = () => infra.cloudCredentials.get(box.id)?.length
  const before = count()
  freeze(((claims.iat ?? 0) + 1800) * 1000 - 1)
  credentials.sendDue()
  await credentials.whenIdle()
  t.equal(count(), before, 'not earlier')
  advance(1)
  credentials.sendDue()
  const second = await requireToken(federation)
  t.not(second, first)
  t.equal(await assumeRole(federation, second), null)
  t.equal(await assumeRole(federation, first), null, 'it is valid for its whole life')
  advance(HOUR_MS / 2)
  t.equal(await assumeRole(federation, first), 'ExpiredTokenException')
  t.equal(await assumeRole(federation, second), null)

  await api('PATCH', `/boxes/${box.id}`, { env: { A: '1' } })
  t.equal(await requireToken(federation), second, 'a change of something else sends nothing')
  await api('DELETE', `/aws-roles/${roleId}`)
  t.same(await readCredentials(box.id), NONE)
  advance(DAY_MS)
  const last = count()
  credentials.sendDue()
  await credentials.whenIdle()
  t.equal(count(), last, 'a box without a role has no schedule')
})

t.test('AWS refuses other workspaces, audiences and issuers', async (t) => {
  const federation = await startFederation(t)
  await connect(federation)
  federation.addRole('foreign', 'ws_other')
  const token = await requireToken(federation)
  t.equal(await assumeRole(federation, token, toRoleArn('foreign')), 'AccessDenied')
  const { issuer } = federation.instance.context
  const subject = { workspaceId: federation.workspaceId, boxId: federation.box.id }
  const other = await issuer.issue(subject, 'other.example.com')
  t.equal(await assumeRole(federation, other.content.reveal()), 'InvalidIdentityToken')
  const forged = await new SignJWT(decodeJwt(token))
    .setProtectedHeader({ alg: 'HS256', kid: decodeProtectedHeader(token).kid ?? '' })
    .sign(Buffer.from('x'.repeat(32)))
  t.equal(await assumeRole(federation, forged), 'InvalidIdentityToken')
})

t.test('tokens of before and after a rotation verify', async (t) => {
  const federation = await startFederation(t)
  const { api, advance, credentials, send, instance, sts } = federation
  await connect(federation)
  const before = await requireToken(federation)
  const readKeys = async () => (await send('GET', '/oidc/jwks')).json.keys as { kid: string }[]
  const [published] = [await readKeys()]
  t.equal(published.length, 2, 'the active key and the next one')
  const rotate = () => api('POST', '/operator/federation/rotate')
  t.match(await rotate(), { status: 200, json: { rotated: false } }, 'the next key is too new')
  t.same(await readKeys(), published)

  advance(DAY_MS)
  credentials.sendDue()
  const old = await requireToken(federation)
  const { json } = await rotate()
  t.match(json, { rotated: true })
  t.not(decodeProtectedHeader(old).kid, json.activeKeyId)
  t.ok(
    published.some(({ kid }) => kid === json.activeKeyId),
    'it was published before',
  )
  advance(HOUR_MS / 2)
  credentials.sendDue()
  const renewed = await requireToken(federation)
  t.equal(decodeProtectedHeader(renewed).kid, json.activeKeyId)
  t.equal(await assumeRole(federation, old), null, 'of before the rotation')
  t.equal(await assumeRole(federation, renewed), null, 'of after the rotation')
  t.equal(await assumeRole(federation, before), 'ExpiredTokenException')

  t.equal((await readKeys()).length, 3)
  const runSchedule = async () => {
    instance.context.scheduler.runDue()
    await new Promise(setImmediate)
  }
  advance(DAY_MS + 2 * HOUR_MS)
  await runSchedule()
  await waitUntil('the retired key is deleted', async () => (await readKeys()).length === 2)
  advance(30 * DAY_MS)
  await runSchedule()
  await waitUntil('the schedule rotates the keys', async () => (await readKeys()).length === 3)
  credentials.sendDue()
  t.equal(
    await assumeRole(federation, await requireToken(federation)),
    null,
    'with a copy of the keys of a day ago',
  )
  t.equal(sts.calls.at(-1)?.error, null)
  const events = await federation.readEvents('federation.rotate')
  t.same(
    events.map(({ detail }) => detail),
    [{ keyId: json.activeKeyId }],
    'only those of requests',
  )
})

t.test('which boxes get credentials', async (t) => {
  const federation = await startFederation(t)
  const { api, db, memberKey, readCredentials, waitForState, instance, workspaceId } = federation
  await connect(federation)
  const create = async (body: object, key?: string) => {
    const { json } = await api('POST', '/boxes', body, key === undefined ? {} : { key })
    await waitForState(json.box.id, 'running')
    return json.box.id as string
  }
  const has = async (boxId: string) => (await readCredentials(boxId))?.token !== null
  const environment = (await api('POST', '/environments', { name: 'web', toggles: { cloud: true } })).json
    .environment
  const closed = (await api('POST', '/environments', { name: 'closed' })).json.environment
  const safe = (
    await api('POST', '/environments', { name: 'safe', toggles: { restricted: true, cloud: true } })
  ).json.environment

  const ofMember = await create({ environment: null }, memberKey)
  t.equal(await has(ofMember), false, 'of a member, without an environment')
  t.equal(await has(await create({ environment: 'web' }, memberKey)), true, 'of a member, with the channel')
  t.equal(await has(await create({ environment: 'closed' })), false, 'of an owner, without the channel')
  const ofOwner = await create({ environment: null })
  t.equal(await has(ofOwner), true, 'of an owner, without an environment')
  t.ok(safe && closed && environment)
  const restricted = await create({ environment: 'safe' })
  t.same(await readCredentials(restricted), NONE, 'restricted: also a copied token is removed')

  t.test('a change of the channel applies at once', async (t) => {
    const boxId = await create({ environment: 'web' })
    await api('POST', `/environments/${environment.id}/toggles`, { cloud: false })
    await api('POST', `/environments/${environment.id}/upgrade`)
    t.same(await readCredentials(boxId), NONE)
  })

  t.test('a box that becomes restricted loses its token', async (t) => {
    const boxId = await create({ environment: null })
    t.equal(await has(boxId), true)
    const userId = newId('user')
    const user = { id: userId, workspace_id: workspaceId, email: null, name: 'c', created_at: 0 }
    await db
      .insertInto('users')
      .values({ ...user, role: 'owner' })
      .execute()
    await db.updateTable('boxes').set({ owner_user_id: userId }).where('id', '=', boxId).execute()
    const { restrictBoxesOf } = instance.context
    const by = { actor: 'system', now: federation.now() } as const
    await transaction(db, (trx) => restrictBoxesOf(trx, workspaceId, userId, by))
    t.same(await readCredentials(boxId), NONE)
  })

  t.test('a change of the role of an owner applies at once', async (t) => {
    const userId = newId('user')
    const user = { id: userId, workspace_id: workspaceId, email: null, name: 'o', created_at: 0 }
    await db
      .insertInto('users')
      .values({ ...user, role: 'owner' })
      .execute()
    const boxId = await create({ environment: null })
    await db.updateTable('boxes').set({ owner_user_id: userId }).where('id', '=', boxId).execute()
    const session = await createTestSession(federation)
    const update = (role: string) => api('PATCH', `/members/${userId}`, { role }, session)
    t.equal(await has(boxId), true)
    t.equal((await update('member')).status, 200)
    t.same(await readCredentials(boxId), NONE)
    t.equal((await update('owner')).status, 200)
    t.equal(await has(boxId), true)
  })

  t.test('a deleted box gets no token', async (t) => {
    const { infra } = federation
    await db.updateTable('boxes').set({ desired_state: 'terminated' }).where('id', '=', ofOwner).execute()
    await reconnect(federation, ofOwner)
    t.same(await readCredentials(ofOwner), NONE)
    t.ok(infra.cloudCredentials.get(ofOwner))
  })

  t.test('a closing workspace gets no tokens', async (t) => {
    const boxId = await create({ environment: null })
    t.equal(await has(boxId), true)
    // The first workspace cannot be closed with the API.
    const setClosing = async (at: number | null) => {
      await db.updateTable('workspaces').set({ closing_at: at }).where('id', '=', workspaceId).execute()
      await transaction(db, async (trx) => recordAccessChange(trx, { workspaceId }))
    }
    await setClosing(1)
    t.same(await readCredentials(boxId), NONE)
    await setClosing(null)
    t.equal(await has(boxId), true, 'until it is reopened')
    await setClosing(1)
    await reconnect(federation, boxId)
    t.same(await readCredentials(boxId), NONE)
  })
})

t.test('an agent that fails gets the state again', async (t) => {
  const federation = await startFederation(t)
  const { infra, box, credentials, advance, freeze } = federation
  freeze()
  const count = () => infra.cloudCredentials.get(box.id)?.length ?? 0
  infra.respondToCredentials = () => Promise.reject(new Error('it does not respond'))
  await connect(federation)
  await credentials.whenIdle()
  const failed = count()
  advance(61_000)
  infra.respondToCredentials = undefined
  credentials.sendDue()
  t.ok(await requireToken(federation))
  t.equal(count(), failed + 1)

  const status =
    (status: number, body = '') =>
    async () => ({ status, body: Buffer.from(body) })
  for (const response of [status(500), status(200, 'not JSON'), status(200, '{"written":1}')]) {
    infra.respondToCredentials = response
    await reconnect(federation, box.id)
    await credentials.whenIdle()
  }
  t.equal((await federation.api('GET', '/me')).status, 200)
})

t.test('a restricted box does not start before a copied token is removed', async (t) => {
  const federation = await startFederation(t, { lifecycle: { backoff: () => 20 } })
  const { api, infra, waitForState } = federation
  /** The states of the restricted box when its agent was asked to remove the token. */
  const states: string[] = []
  infra.respondToCredentials = async (boxId) => {
    const { box } = (await api('GET', `/boxes/${boxId}`)).json
    if (!box.restricted || states.push(box.observedState) === 1) throw new ApiError('box_unreachable')
    return states.length === 2 ? { status: 403, body: Buffer.from('{}') } : undefined
  }
  const create = async (body: object) => (await api('POST', '/boxes', body)).json.box.id as string
  const [usual, restricted] = [await create({}), await create({ restricted: true })]
  await waitForState(usual, 'running')
  await waitForState(restricted, 'running')
  const [first = '', ...others] = states.slice(0, 3)
  t.not(first, 'running')
  t.same(others, [first, first], 'the agent is asked again until it has removed the token')
  t.same(infra.cloudCredentials.get(restricted)?.at(-1), NONE)
})

t.test('no log line, response, event or row has a token or a private key', async (t: Test) => {
  const lines: string[] = []
  const log = pino({ level: 'trace' }, { write: (line: string) => void lines.push(line) })
  const federation = await startFederation(t, { log })
  const { api, db, infra, addRole, readEvents } = federation
  await connect(federation)
  const link = (await api('POST', '/aws-connect', {})).json
  const secret = /param_ConnectToken=([\w-]+)/.exec(link.url)?.[1] ?? ''
  addRole('linked')
  const callback = { id: link.id, token: secret, roleArn: toRoleArn('linked') }
  t.match(await api('POST', '/aws-connect/callback', callback, { key: null }), { json: { connected: true } })
  await federation.credentials.whenIdle()
  const tokens = [...infra.cloudCredentials.values()].flat().flatMap(({ token }) => token?.content ?? [])
  t.ok(tokens.length > 0 && secret.length === 43)

  const responses = [
    (await api('GET', '/aws-roles')).text,
    (await api('GET', '/federation/documents')).text,
    (await api('GET', '/audit')).text,
  ]
  const rows: string[] = []
  for (const { name } of await db.introspection.getTables())
    rows.push(
      JSON.stringify(
        await db
          .selectFrom(name as 'boxes')
          .selectAll()
          .execute(),
      ),
    )
  const keys = await db.selectFrom('federation_keys').selectAll().execute()
  for (const key of keys) t.match(key.private_key, /^v1\.[\w-]+\.[\w-]+\.[\w-]+$/, 'sealed')
  t.ok((await readEvents('aws_connect.create')).length === 1)
  for (const text of [...lines, ...responses, ...rows]) {
    const found = [...tokens, secret, 'PRIVATE KEY'].filter((value) => text.includes(value))
    if (found.length > 0) t.fail(`found in ${text.slice(0, 300)}`)
  }
  for (const key of JSON.parse(responses[1] ?? '').jwks.keys)
    t.same(Object.keys(key).sort(), ['alg', 'e', 'kid', 'kty', 'n', 'use'])
})
