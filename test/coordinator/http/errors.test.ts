// The errors 401, 404, 405, 429 and 500 in the envelope of each host.
import t from 'tap'
import { z } from 'zod'
import { byKey } from '../../../coordinator/http/access.ts'
import { route } from '../../../coordinator/http/route.ts'
import { ApiError } from '../../../shared/errors.ts'
import { startTestServer } from './test-server.ts'

const createThingRoute = (method: 'GET' | 'DELETE') =>
  route({
    access: byKey('boxes', 'write'),
    method,
    path: '/things/:id',
    summary: 'Use a thing',
    request: { params: z.object({ box: z.string().optional(), id: z.uuid() }) },
    responses: { 200: z.object({}) },
    handler: async () => ({}),
  })
const broken = route({
  access: byKey('boxes', 'write'),
  method: 'GET',
  path: '/broken',
  summary: 'Fail with an unexpected error',
  responses: { 200: z.object({}) },
  handler: async () => {
    throw new Error('secret internal detail')
  },
})
const rejecting = route({
  access: byKey('boxes', 'write'),
  method: 'GET',
  path: '/rejecting',
  summary: 'Fail with an API error',
  responses: { 200: z.object({}) },
  handler: async () => {
    throw new ApiError('rate_limited', undefined, { headers: { 'retry-after': '3' }, fields: { extra: 1 } })
  },
})
const routes = [createThingRoute('GET'), createThingRoute('DELETE'), broken, rejecting]
const special = route({
  access: byKey('boxes', 'write'),
  method: 'POST',
  path: '/things/special',
  summary: 'Use the special thing',
  responses: { 200: z.object({}) },
  handler: async () => ({}),
})
routes.push(special)
const ID = '0d1f6bd5-7a7e-4a52-9a3c-1f2f3c4d5e6f'

/** Read the error code; undefined for a body that is not in the envelope. */
const getControlCode = ({ error }: { error?: unknown }) => error
const getEdgeCode = ({ ok, error }: { ok?: unknown; error?: { code?: unknown } }) =>
  ok === false ? error?.code : undefined

for (const { name, prefix, getErrorCode } of [
  { name: 'control plane', prefix: '/api/v1', getErrorCode: getControlCode },
  { name: 'edge', prefix: '/v1/box/apple', getErrorCode: getEdgeCode },
]) {
  t.test(`${name}: responds with the status and the error envelope`, async (t) => {
    const server = await startTestServer(t, {
      control: routes,
      edge: routes,
      keys: {
        dcp_expired: { rejected: 'expired', expiresAt: Date.UTC(2020, 0, 1) },
        dcp_revoked: { rejected: 'revoked' },
        dcp_unavailable: new Error('the database is not available'),
      },
    })
    const { send } = server

    for (const path of [`${prefix}/things/${ID}`, `${prefix}/nothing`, `${prefix}/%zz`, `${prefix}/broken`]) {
      const response = await send('GET', path, { key: null })
      t.equal(response.status, 401, `without a key: ${path}`)
      t.equal(getErrorCode(response.json), 'unauthorized')
    }
    for (const key of ['dcp_other', 'dcp_revoked', 'owner']) {
      const response = await send('GET', `${prefix}/rejecting`, { key })
      t.equal(getErrorCode(response.json), 'unauthorized', key)
    }
    const expired = await send('GET', `${prefix}/rejecting`, { key: 'dcp_expired' })
    t.equal(expired.status, 401)
    t.equal(getErrorCode(expired.json), 'token_expired')
    t.match(expired.text, '"expiresAt":"2020-01-01T00:00:00.000Z"')

    const unavailable = await send('GET', `${prefix}/rejecting`, { key: 'dcp_unavailable' })
    t.equal(unavailable.status, 503, 'the key cannot be looked up')
    t.equal(getErrorCode(unavailable.json), 'control_plane_unavailable')
    t.equal(unavailable.headers.get('retry-after'), '1')
    t.ok(server.logLines.some((line) => line.includes('the database is not available')))

    for (const path of ['/nothing', '/things/not-a-uuid', `/things/${'a'.repeat(600)}`, '/things/']) {
      const response = await send('GET', prefix + path)
      t.equal(response.status, 404, `unknown: ${path.slice(0, 30)}`)
      t.equal(getErrorCode(response.json), 'not_found')
    }
    for (const method of ['POST', 'PUT', 'PATCH', 'OPTIONS', 'PROPFIND']) {
      const response = await send(method, `${prefix}/things/${ID}`)
      t.equal(response.status, 405, method)
      t.equal(response.headers.get('allow'), 'DELETE, GET, HEAD')
      t.equal(getErrorCode(response.json), 'method_not_allowed')
    }

    for (const method of ['GET', 'HEAD', 'DELETE', 'PUT']) {
      const response = await send(method, `${prefix}/things/special`)
      t.equal(response.status, 405, `${method}, which another route with a parameter has`)
      t.equal(response.headers.get('allow'), 'POST')
    }
    t.equal((await send('POST', `${prefix}/things/special`)).status, 200)

    t.match(await send('HEAD', `${prefix}/things/${ID}`), { status: 200, text: '' }, 'GET serves HEAD')
    t.match(await send('HEAD', `${prefix}/rejecting`), { status: 429, text: '' })

    const rejected = await send('GET', `${prefix}/rejecting`)
    t.equal(rejected.status, 429)
    t.equal(rejected.headers.get('retry-after'), '3')
    t.match(rejected.text, '"extra":1')

    const failure = await send('GET', `${prefix}/broken`)
    t.equal(failure.status, 500)
    t.equal(getErrorCode(failure.json), 'internal_error')
    t.notMatch(failure.text, 'secret')
    const requestId = failure.headers.get('x-request-id')
    t.ok(
      server.logLines.some(
        (line) => line.includes('secret internal detail') && line.includes(`"${requestId}"`),
      ),
      'the log has the error with the request id of the response',
    )
  })
}

t.test('responds 404 without a key outside the prefixes of both hosts', async (t) => {
  const { send } = await startTestServer(t)
  for (const path of ['/nothing', '/api', '/api/v10', '/v12/box/a', '/favicon.ico', '/%zz']) {
    const response = await send('GET', path, { key: null })
    t.equal(response.status, 404, path)
    t.equal(response.json.error, 'not_found')
  }
})

t.test('a forwarded connection is counted as one', async (t) => {
  const counted: (boolean | undefined)[] = []
  const { send } = await startTestServer(t, {
    edge: routes.map((route) => ({ ...route, isForward: route.path === '/broken' })),
    countRequest: async (_keyId, isForward) => void counted.push(isForward),
  })
  await send('GET', '/v1/box/apple/broken')
  await send('GET', `/v1/box/apple/things/${ID}`)
  t.same(counted, [true, false])
})

t.test('counts every edge request with a valid key against the rate, also a rejected one', async (t) => {
  const counted: string[] = []
  const countRequest = async (keyId: string) => {
    counted.push(keyId)
    if (counted.length > 6) throw new ApiError('rate_limited', undefined, { headers: { 'retry-after': '1' } })
  }
  const { send } = await startTestServer(t, { control: routes, edge: routes, countRequest })
  const prefix = '/v1/box/apple'
  await send('GET', `${prefix}/rejecting`, { key: null })
  await send('GET', '/api/v1/rejecting')
  t.same(counted, [], 'requests without a valid key and to the control plane are not counted')
  for (const [method, path, status] of [
    ['GET', `/things/${ID}`, 200],
    ['GET', '/things/not-a-uuid', 404],
    ['GET', '/nothing', 404],
    ['GET', '/%zz', 400],
    ['POST', `/things/${ID}`, 405],
    ['GET', '/broken', 500],
    ['GET', `/things/${ID}`, 429],
    ['GET', '/nothing', 429],
  ] as const)
    t.equal((await send(method, prefix + path)).status, status, `${method} ${path}`)
  t.same(new Set(counted), new Set(['key_1']))
})
