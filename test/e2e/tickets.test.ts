// Terminal tickets over HTTP and WebSocket: what creates them, what accepts them, and when they end.

import { once } from 'node:events'
import { type IncomingMessage, request } from 'node:http'
import { pino } from 'pino'
import t, { type Test } from 'tap'
import { hashSecret } from '../../coordinator/http/hash-secret.ts'
import { newUuid } from '../../shared/ids.ts'
import { connectAttachClient } from '../support/attach-client.ts'
import type { RequestOptions } from '../support/coordinator.ts'
import { createUserKey } from '../support/limited-key.ts'
import { limitsEnv } from '../support/limits-env.ts'
import { expandDocument } from '../support/openapi-document.ts'
import { createTestSession } from '../support/session.ts'
import { waitUntil } from '../support/wait-until.ts'
import { HIGH_EDGE_LIMITS, startCoordinatorWithBox } from './coordinator-with-box.ts'

const logLines: string[] = []
const coordinator = await startCoordinatorWithBox(t, {
  env: limitsEnv({ ...HIGH_EDGE_LIMITS, terminals: 2 }),
  log: pino({ level: 'trace' }, { write: (line: string) => void logLines.push(line) }),
})
const { url, api, send, box, boxRequest } = coordinator
const { db, openRequests, tickets } = coordinator.instance.context
const session = await createTestSession(coordinator)
const secrets: string[] = []

type Ticket = { id: string; secret: string; expiresAt: string; options: RequestOptions }

async function createTicket(body: object = {}, options: RequestOptions = session): Promise<Ticket> {
  const { status, json } = await api('POST', `/boxes/${box.id}/tickets`, body, options)
  if (status !== 201) throw new Error(`responded with ${status}: ${JSON.stringify(json)}`)
  secrets.push(json.secret)
  const { id, expiresAt } = json.ticket
  return { id, secret: json.secret, expiresAt, options: { key: json.secret } }
}

const ticket = await createTicket()

const readEvents = (kind: string) =>
  db.selectFrom('audit_log').selectAll().where('kind', '=', kind).orderBy('no').execute()

async function connect(t: Test, { headers = {}, protocols }: { headers?: object; protocols?: string[] }) {
  const path = `/v1/box/${box.hostname}/terminal`
  const client = await connectAttachClient(url + path, { ...headers }, protocols ? { protocols } : {})
  t.teardown(async () => {
    client.cut()
    await client.closed
  })
  return client
}

const protocolsOf = ({ secret }: Ticket) => [`boxwood.ticket.${secret}`, 'boxwood']

t.test('a session creates a ticket, which is on record without its secret', async (t) => {
  const now = Date.now()
  const { json, status } = await api('POST', `/boxes/${box.id}/tickets`, { expiresInSeconds: 60 }, session)
  t.equal(status, 201)
  t.match(json, { ticket: { id: /^tkt_/, boxId: box.id }, secret: /^dct_[0-9A-Za-z]{40,}$/ })
  const lifetime = Date.parse(json.ticket.expiresAt) - now
  t.ok(lifetime >= 60_000 && lifetime < 120_000)
  const [event, ...others] = await readEvents('ticket.create')
  t.match(event, { actor_user_id: session.userId, actor_token_id: session.sessionId, box_id: box.id })
  t.same(JSON.parse(event?.detail ?? ''), { ticketId: ticket.id, expiresAt: ticket.expiresAt })
  t.same(others, [], 'a session is recorded once in an hour')
  const row = await db.selectFrom('tickets').selectAll().where('id', '=', json.ticket.id).executeTakeFirst()
  t.notOk(JSON.stringify([row, event]).includes(json.secret), 'only the hash is stored')
})

t.test('only a session whose user may use the box creates a ticket', async (t) => {
  const create = (options: RequestOptions, body: object = {}, id = box.id) =>
    api('POST', `/boxes/${id}/tickets`, body, options)
  t.match(await create({}), { status: 401, json: { error: 'unauthorized' } }, 'a key')
  t.match(await create(ticket.options), { status: 401, json: { error: 'unauthorized' } }, 'a ticket')
  t.equal((await create(await createTestSession(coordinator, 'member'))).status, 201)
  t.equal((await create(await createTestSession(coordinator, 'contractor'))).status, 404)
  t.equal((await create(session, {}, newUuid())).status, 404)
  t.equal((await create(session, {}, box.hostname)).status, 404)
  for (const expiresInSeconds of [59, 3601, 60.5, '60'])
    t.match(await create(session, { expiresInSeconds }), { status: 400, json: { error: 'bad_request' } })
})

t.test('a ticket is accepted on its routes, and on no other one', async (t) => {
  const accepted = new Set([
    ...['GET /api/v1/boxes', 'GET /api/v1/boxes/{id}', 'POST /api/v1/boxes/{id}/wake'],
    'POST /api/v1/audit',
    ...['GET', 'POST'].map((method) => `${method} /v1/box/{box}/exec`),
    ...['GET', 'DELETE'].map((method) => `${method} /v1/box/{box}/exec/{processId}`),
    ...['stream', 'attach'].map((name) => `GET /v1/box/{box}/exec/{processId}/${name}`),
    ...['GET', 'PUT', 'DELETE'].map((method) => `${method} /v1/box/{box}/files`),
    ...['GET /v1/box/{box}/files/list', 'GET /v1/box/{box}/files/stat'],
    ...['POST /v1/box/{box}/files/mkdir', 'POST /v1/box/{box}/files/move'],
    ...['GET /v1/box/{box}/download', 'PUT /v1/box/{box}/upload', 'GET /v1/box/{box}/terminal'],
    ...['GET', 'POST'].map((method) => `${method} /v1/box/{box}/terminal/sessions`),
    'DELETE /v1/box/{box}/terminal/sessions/{session}',
    'GET /v1/box/{box}/processes',
    ...['GET', 'DELETE'].map((method) => `${method} /v1/box/{box}/desktop`),
    ...['GET /v1/box/{box}/desktop/stream', 'POST /v1/box/{box}/desktop/start'],
    ...['GET', 'POST'].map((method) => `${method} /v1/box/{box}/prompts`),
    ...['conversations', 'events', '{runId}', '{runId}/events'].map(
      (name) => `GET /v1/box/{box}/prompts/${name}`,
    ),
    ...['interrupt', '{runId}/interrupt'].map((name) => `POST /v1/box/{box}/prompts/${name}`),
  ])
  const document = expandDocument((await send('GET', '/openapi.json')).json)
  const seen = new Set<string>()
  for (const [path, operations] of Object.entries<object>(document.paths))
    for (const [name, operation] of Object.entries<{ security: object[] }>(operations as never)) {
      const method = name.toUpperCase()
      const route = `${method} ${path}`
      if (operation.security.length === 0) continue
      if (accepted.has(route)) seen.add(route)
      const target = path
        .replace('{box}', box.hostname)
        .replace('{id}', box.id)
        .replace('{processId}', `p_${'0'.repeat(24)}`)
        .replace(/\{\w+\}/g, 'unknown')
      const body = method === 'GET' ? undefined : {}
      const response = await send(method, target, body, ticket.options)
      if (accepted.has(route)) t.not(response.status, 401, `${route} is accepted`)
      else t.equal(response.status, 401, `${route} is refused`)
    }
  t.same(
    [...accepted].filter((route) => !seen.has(route)),
    [],
    'all of its routes exist',
  )
})

t.test('a ticket acts on its box only', async (t) => {
  const { options } = ticket
  const row = await db.selectFrom('boxes').selectAll().where('id', '=', box.id).executeTakeFirstOrThrow()
  const other = { ...row, id: newUuid(), hostname: 'plum', desired_state: 'suspended' as const }
  await db
    .insertInto('boxes')
    .values({ ...other, observed_state: 'suspended', agent_token_hash: null })
    .execute()
  t.teardown(() => db.deleteFrom('boxes').where('id', '=', other.id).execute())
  t.match((await api('GET', '/boxes', undefined, options)).json.boxes, [{ id: box.id }])
  t.equal((await api('GET', '/boxes', undefined, options)).json.boxes.length, 1)
  t.match((await api('GET', '/boxes?limit=10', undefined, options)).json, { boxes: { length: 1 } })
  t.match((await api('GET', `/boxes/${box.id}`, undefined, options)).json, { box: { id: box.id } })
  t.equal((await api('POST', `/boxes/${box.id}/wake`, undefined, options)).status, 202)
  t.match(await boxRequest('POST', '/exec', { command: 'echo hi' }, options), {
    status: 200,
    json: { stdout: 'hi\n' },
  })
  for (const [method, path] of [
    ['GET', `/api/v1/boxes/${other.id}`],
    ['POST', `/api/v1/boxes/${other.id}/wake`],
    ['GET', '/v1/box/plum/exec'],
    ['GET', `/v1/box/${other.id}/files?path=x`],
  ] as const)
    t.equal((await send(method, path, undefined, options)).status, 404, `${method} ${path}`)
})

t.test('a browser opens a terminal with the ticket as a subprotocol, which is not repeated', async (t) => {
  for (const protocols of [protocolsOf(ticket), protocolsOf(ticket).reverse()]) {
    const before = (await readEvents('box.connect')).length
    const client = await connect(t, { protocols })
    t.equal(client.ws.protocol, 'boxwood')
    const { session: terminal } = await client.waitFor('attached')
    const events = await readEvents('box.connect')
    t.equal(events.length, before + 1)
    t.match(events.at(-1), {
      ...{ origin: 'server', actor_kind: 'ticket', actor_token_id: ticket.id },
      ...{ actor_user_id: session.userId, box_id: box.id },
    })
    t.same(JSON.parse(events.at(-1)?.detail ?? ''), { session: terminal })
    client.cut()
    await client.closed
  }
  const unknown = [`boxwood.ticket.dct_${'0'.repeat(48)}`, 'boxwood']
  await t.rejects(connect(t, { protocols: unknown }), /status 401: .*unauthorized/)
  await t.rejects(connect(t, { protocols: ['boxwood'] }), /status 401: .*unauthorized/)
})

t.test('an invalid handshake is refused before a terminal is started', async (t) => {
  const before = (await readEvents('box.connect')).length
  const headers = {
    ...{ authorization: `Bearer ${ticket.secret}`, connection: 'Upgrade', upgrade: 'websocket' },
    ...{ 'sec-websocket-version': '13', 'sec-websocket-key': Buffer.alloc(16).toString('base64') },
  }
  for (const invalid of [
    { 'sec-websocket-protocol': 'boxwood,,other' },
    { 'sec-websocket-protocol': 'boxwood, boxwood' },
    { 'sec-websocket-key': 'short' },
  ]) {
    const path = `/v1/box/${box.hostname}/terminal`
    const refused = request(url + path, { headers: { ...headers, ...invalid }, agent: false }).end()
    const [response]: [IncomingMessage] = (await once(refused, 'response')) as never
    t.equal(response.statusCode, 400)
    t.match(JSON.parse(Buffer.concat(await response.toArray()).toString()), {
      error: { code: 'invalid_request' },
    })
  }
  t.equal((await readEvents('box.connect')).length, before)
})

t.test('a workspace has a limit of open terminals, over all of its credentials', async (t) => {
  const headers = { authorization: `Bearer ${coordinator.key}` }
  await connect(t, { protocols: protocolsOf(ticket) })
  const second = await connect(t, { headers })
  await t.rejects(connect(t, { headers }), /status 429: .*customer_session_limit.*limit of 2 open/)
  await t.rejects(connect(t, { protocols: protocolsOf(ticket) }), /status 429/)
  const { json } = await boxRequest('POST', '/exec', { command: 'sleep 60', attached: true })
  const command = `${url}/v1/box/${box.hostname}/exec/${json.processId}/attach`
  const attached = await connectAttachClient(command, headers)
  attached.cut()
  second.cut()
  await second.closed
  const third = await waitUntil('a terminal can be opened', () => connect(t, { headers }).catch(() => null))
  t.ok(await third.waitFor('attached'))
})

t.test('an expired ticket', async (t) => {
  const expired = await createTicket()
  await db.updateTable('tickets').set({ expires_at: 1_000 }).where('id', '=', expired.id).execute()
  const expiresAt = '1970-01-01T00:00:01.000Z'
  t.match(await api('GET', '/boxes', undefined, expired.options), {
    status: 401,
    json: { error: 'token_expired', message: /This ticket has expired/, expiresAt },
  })
  t.match(await boxRequest('GET', '/exec', undefined, expired.options), {
    status: 401,
    json: { error: { code: 'token_expired', expiresAt } },
  })
  await t.rejects(connect(t, { protocols: protocolsOf(expired) }), /status 401: .*token_expired/)
  await tickets.prune(new AbortController().signal)
  t.equal((await api('GET', '/boxes', undefined, expired.options)).json.error, 'unauthorized')
  t.equal((await api('GET', '/boxes', undefined, ticket.options)).status, 200, 'other tickets stay')
})

t.test('a ticket ends with its session, its user, and never outlives its session', async (t) => {
  const member = await createTestSession(coordinator, 'member')
  const expiry = Date.now() + 90_000
  await db.updateTable('sessions').set({ expires_at: expiry }).where('id', '=', member.sessionId).execute()
  const short = await createTicket({ expiresInSeconds: 3600 }, member)
  t.equal(Date.parse(short.expiresAt), expiry)
  await db.updateTable('users').set({ removed_at: 1 }).where('id', '=', member.userId).execute()
  t.match(await api('GET', '/boxes', undefined, short.options), { status: 401 }, 'the user was removed')
  await db.updateTable('users').set({ removed_at: null }).where('id', '=', member.userId).execute()
  t.equal((await api('GET', '/boxes', undefined, short.options)).status, 200)
  await db.deleteFrom('sessions').where('id', '=', member.sessionId).execute()
  t.match(await api('GET', '/boxes', undefined, short.options), {
    status: 401,
    json: { error: 'unauthorized', message: /its session has ended/ },
  })
})

t.test('a closing workspace creates no tickets', async (t) => {
  await db
    .updateTable('workspaces')
    .set({ closing_at: 1, purge_after: 2 ** 40 })
    .execute()
  t.teardown(() => db.updateTable('workspaces').set({ closing_at: null, purge_after: null }).execute())
  t.match(await api('POST', `/boxes/${box.id}/tickets`, {}, session), {
    status: 409,
    json: { error: 'workspace_closing' },
  })
})

t.test('the ticket of a deleted box', async (t) => {
  const key = await createUserKey(coordinator, 'owner')
  t.equal((await api('DELETE', `/boxes/${box.id}`, undefined, { key })).status, 202)
  t.same((await api('GET', '/boxes', undefined, ticket.options)).json, { boxes: [] })
  t.same((await api('GET', '/boxes?limit=1', undefined, ticket.options)).json.boxes, [])
  t.equal((await api('POST', `/boxes/${box.id}/tickets`, {}, session)).status, 404)
  t.equal((await api('POST', `/boxes/${box.id}/wake`, {}, ticket.options)).status, 404)
})

t.test('the log has no ticket, and closed requests leave nothing registered', async (t) => {
  await waitUntil('all requests are closed', () => openRequests.size === 0)
  const log = logLines.join('')
  for (const secret of secrets) t.notOk(log.includes(secret) || log.includes(hashSecret(secret)))
})
