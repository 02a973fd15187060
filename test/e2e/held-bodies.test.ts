// Requests whose body arrives after their credential has lost its rights: each changing route of the OpenAPI document.
import { type ClientRequest, type IncomingMessage, request } from 'node:http'
import t, { type Test } from 'tap'
import { startTestCoordinator } from '../support/coordinator.ts'
import { createTestSession } from '../support/session.ts'
import { waitUntil } from '../support/wait-until.ts'

const coordinator = await startTestCoordinator(t)
const { url, api, instance } = coordinator
const { openRequests, db } = instance.context
const UUID = '00000000-0000-4000-8000-000000000000'
const CHANGING = ['post', 'put', 'patch', 'delete']

type Operation = { requestBody?: { content: Record<string, unknown> }; security?: unknown[] }
type Paths = Record<string, Record<string, Operation>>
const { paths } = (await (await fetch(`${url}/openapi.json`)).json()) as { paths: Paths }
const routes = Object.entries(paths).flatMap(([path, operations]) =>
  Object.entries(operations)
    .filter(([method, { requestBody, security }]) => {
      const needsCredential = security === undefined || security.length > 0
      return CHANGING.includes(method) && requestBody?.content['application/json'] && needsCredential
    })
    .map(([method]) => ({ method: method.toUpperCase(), path: path.replaceAll(/\{\w+\}/g, UUID) })),
)
const controlRoutes = routes.filter(({ path }) => path.startsWith('/api/v1/'))

const owner = await createTestSession(coordinator)

type Held = {
  name: string
  request: ClientRequest
  response: Promise<IncomingMessage>
  isAnswered: boolean
}

/**
 * Sends the requests without the second half of their bodies, and waits until all are authenticated. Returns those that the
 * credential may send.
 */
async function hold(selected: typeof routes, headers: Record<string, string>): Promise<Held[]> {
  const { size } = openRequests
  const all = selected.map(({ method, path }) => {
    const bodyHeaders = { 'content-type': 'application/json', 'content-length': '2' }
    const options = { method, agent: false, headers: { ...bodyHeaders, ...headers } } as const
    const { promise: response, resolve, reject } = Promise.withResolvers<IncomingMessage>()
    const held: Held = {
      name: `${method} ${path}`,
      request: request(url + path, options, resolve).on('error', reject),
      response,
      isAnswered: false,
    }
    const onAnswer = () => {
      held.isAnswered = true
    }
    response.then(onAnswer, onAnswer)
    held.request.write('{')
    return held
  })
  const listOpen = () => all.filter(({ isAnswered }) => !isAnswered)
  await waitUntil('the requests are authenticated', () => openRequests.size - size === listOpen().length)
  return listOpen()
}

/** Numbers of rows. Refusals are audit events. */
async function countRows(): Promise<Record<string, number>> {
  const tables = await db.introspection.getTables()
  const counts: Record<string, number> = {}
  for (const { name } of tables.filter(({ name }) => !name.startsWith('audit'))) {
    const { count } = await db
      .selectFrom(name as 'boxes')
      .select(({ fn }) => fn.countAll().as('count'))
      .executeTakeFirstOrThrow()
    counts[name] = Number(count)
  }
  return counts
}

/** @param lose takes the rights of the requests */
async function testLoss(
  t: Test,
  held: readonly Held[],
  lose: () => Promise<{ status: number }>,
  code: string,
) {
  t.ok(held.length >= 3, `${held.length} requests are open`)
  const { status } = await lose()
  t.ok(status < 300, `the rights are lost, with status ${status}`)
  const before = await countRows()
  for (const { request } of held) request.end('}')
  for (const { name, response } of held) {
    const received = await response
    const body = JSON.parse(Buffer.concat(await received.toArray()).toString())
    t.match(JSON.stringify(body), new RegExp(`"${code}"`), `${name} is refused`)
  }
  t.same(await countRows(), before, 'nothing is written')
  await waitUntil('no request is open', () => openRequests.size === 0)
}

t.ok(controlRoutes.length > 25, 'there are routes')

t.test('a revoked key', async (t) => {
  const { json } = await api('POST', '/keys', { name: 'test' }, owner)
  const held = await hold(
    routes.filter(({ path }) => !path.includes('/session')),
    { authorization: `Bearer ${json.secret}` },
  )
  await testLoss(t, held, () => api('DELETE', `/keys/${json.key.id}`, undefined, owner), 'unauthorized')
})

t.test('a removed owner', async (t) => {
  const session = await createTestSession(coordinator, 'owner')
  const held = await hold(controlRoutes, session.headers ?? {})
  await testLoss(t, held, () => api('DELETE', `/members/${session.userId}`, undefined, owner), 'unauthorized')
})

t.test('an owner who has become a contractor', async (t) => {
  const session = await createTestSession(coordinator, 'owner')
  const ownerRoutes = controlRoutes.filter(({ path }) =>
    /v1\/(members|workspace$|workspace\/|audit\/sink)/.test(path),
  )
  const held = await hold(ownerRoutes, session.headers ?? {})
  const lose = () => api('PATCH', `/members/${session.userId}`, { role: 'contractor' }, owner)
  await testLoss(t, held, lose, 'not_(allowed|owner)')
})

t.test('a session that has ended', async (t) => {
  const session = await createTestSession(coordinator, 'owner')
  const other = await createTestSession(coordinator, 'owner')
  const held = await hold(controlRoutes, session.headers ?? {})
  await db
    .updateTable('sessions')
    .set({ user_id: session.userId })
    .where('id', '=', other.sessionId)
    .execute()
  const lose = () => api('DELETE', `/sessions/${session.sessionId}`, undefined, other)
  await testLoss(t, held, lose, 'unauthorized')
})
