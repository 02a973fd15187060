// Routes whose errors have the bare form of spec §7.2, for errors that no handler raises.
import { once } from 'node:events'
import { connect } from 'node:net'
import t from 'tap'
import { z } from 'zod'
import { byKey } from '../../../coordinator/http/access.ts'
import { route } from '../../../coordinator/http/route.ts'
import { ApiError } from '../../../shared/errors.ts'
import { actor, startTestServer } from './test-server.ts'

const definition = {
  method: 'POST',
  access: byKey('boxes', 'run'),
  summary: 'Stop',
  request: { body: z.object({}) },
  responses: { 200: z.object({}) },
  handler: async () => {
    throw new ApiError('exec_failed', 'a message')
  },
} as const
const bare = route({
  ...definition,
  path: '/stop',
  bareErrors: { exec_failed: 'desktop_stop_failed', invalid_path: 'bad_request' },
})
const edge = [bare, route({ ...definition, path: '/other' })]
const body = {}

t.test('a body that arrives too slowly', async (t) => {
  const { url } = await startTestServer(t, { edge, bodyTimeoutMs: 50 })
  for (const [path, expected] of [
    ['/stop', /^HTTP\/1\.1 408 [\s\S]*\r\n\r\n\{"error":"request_timeout"\}$/],
    ['/other', /^HTTP\/1\.1 408 [\s\S]*"code":"request_timeout"/],
  ] as const) {
    const socket = connect(Number(new URL(url).port), '127.0.0.1')
    let received = ''
    socket.on('data', (chunk) => {
      received += chunk
    })
    socket.write(
      `POST /v1/box/fig${path} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer dcp_owner\r\n` +
        'content-type: application/json\r\ncontent-length: 2\r\n\r\n{',
    )
    await once(socket, 'end')
    socket.destroy()
    t.match(received, expected)
  }
})

t.test('the key cannot be checked', async (t) => {
  const { send } = await startTestServer(t, { edge, keys: { dcp_broken: new Error('the database failed') } })
  const { status, json, headers } = await send('POST', '/v1/box/fig/stop', { body, key: 'dcp_broken' })
  t.strictSame([status, json], [503, { error: 'control_plane_unavailable' }])
  t.equal(headers.get('retry-after'), '1')
})

t.test('the key is not verified', async (t) => {
  const unverified = { ...actor, credential: { ...actor.credential, isUnverified: true } }
  const { send } = await startTestServer(t, { edge, keys: { dcp_new: { actor: unverified } } })
  const { status, json } = await send('POST', '/v1/box/fig/stop', { body, key: 'dcp_new' })
  t.strictSame([status, json], [403, { error: 'verification_required' }])
})

t.test('the coordinator is stopping', async (t) => {
  const { send, http } = await startTestServer(t, { edge })
  http.rejectNewRequests()
  const { status, json } = await send('POST', '/v1/box/fig/stop', { body })
  t.strictSame([status, json], [503, { error: 'control_plane_unavailable' }])
})

t.test('a code gets the name of the route, and its status', async (t) => {
  const { send } = await startTestServer(t, { edge })
  const { status, json } = await send('POST', '/v1/box/fig/stop', { body })
  t.strictSame([status, json], [502, { error: 'desktop_stop_failed' }])
  const other = await send('POST', '/v1/box/fig/other', { body })
  t.strictSame(other.json, { ok: false, error: { code: 'exec_failed', message: 'a message' } })
})

t.test('only the path of the route has the bare form', async (t) => {
  const { send } = await startTestServer(t, { edge })
  t.strictSame((await send('GET', '/v1/box/fig/stop')).json, { error: 'method_not_allowed' })
  const encoded = await send('POST', '/v1/box/%ff/stop', { body })
  t.strictSame([encoded.status, encoded.json], [400, { error: 'bad_request' }])
  t.match((await send('POST', '/v1/box/%ff/other', { body })).json, { error: { code: 'invalid_path' } })
  t.match((await send('GET', '/v1/box/fig/other')).json, { ok: false, error: { code: 'method_not_allowed' } })
  t.match((await send('POST', '/v1/box/fig/stop/now', { body })).json, {
    ok: false,
    error: { code: 'not_found' },
  })
})

t.test('an unexpected error', async (t) => {
  const broken = route({ ...bare, handler: () => Promise.reject(new Error('unexpected')) })
  const { send } = await startTestServer(t, { edge: [broken] })
  const { status, json, headers } = await send('POST', '/v1/box/fig/stop', { body })
  t.strictSame([status, json], [500, { error: 'internal_error' }])
  t.ok(headers.get('x-request-id'))
})
