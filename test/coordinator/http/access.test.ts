// Access levels of limited keys, and the minimum CLI version.
import t from 'tap'
import { z } from 'zod'
import { byKey } from '../../../coordinator/http/access.ts'
import { type Route, route } from '../../../coordinator/http/route.ts'
import { actor, startTestServer } from './test-server.ts'

const createRoute = (path: string, overrides: Partial<Route>) =>
  route({
    access: byKey('boxes', 'write'),
    method: 'GET',
    path,
    summary: '',
    responses: { 200: z.object({}) },
    handler: async () => ({}),
    ...overrides,
  })
const control = [
  createRoute('/boxes', { access: byKey('boxes', 'read') }),
  createRoute('/boxes', { method: 'POST', access: byKey('boxes', 'write', { scope: 'workspace' }) }),
  createRoute('/settings', { access: byKey('workspace', 'write') }),
  createRoute('/me', { access: byKey(null, 'read') }),
]
const keys = {
  dcp_reader: { actor: { ...actor, access: { boxes: 'read' as const } } },
  dcp_nothing: { actor: { ...actor, access: {} } },
  dcp_later: { actor: { ...actor, access: { boxes: 'level of a later version' as 'read' } } },
  dcp_one_box: { actor: { ...actor, boxIds: ['0d1f6bd5-7a7e-4a52-9a3c-1f2f3c4d5e6f'] } },
}

t.test('rejects a limited key and names the missing area and level', async (t) => {
  const { send } = await startTestServer(t, { control, keys })
  const sendDenied = async (key: string, method: string, path: string) => {
    const { status, json } = await send(method, `/api/v1${path}`, { key })
    t.equal(status, 403)
    t.equal(json.error, 'key_access_denied')
    return json
  }
  t.equal((await send('GET', '/api/v1/boxes', { key: 'dcp_reader' })).status, 200)
  const write = await sendDenied('dcp_reader', 'POST', '/boxes')
  t.match(write, { area: 'boxes', level: 'write', message: /write access to boxes/ })
  t.match(await sendDenied('dcp_nothing', 'GET', '/boxes'), { area: 'boxes', level: 'read' })
  t.match(await sendDenied('dcp_later', 'GET', '/boxes'), { area: 'boxes', level: 'read' })
  t.match(await sendDenied('dcp_reader', 'GET', '/settings'), { area: 'workspace', level: 'write' })
  for (const key of Object.keys(keys)) t.equal((await send('GET', '/api/v1/me', { key })).status, 200)
})

t.test('rejects workspace-wide requests of a key limited to some boxes', async (t) => {
  const { send } = await startTestServer(t, { control, keys })
  const response = await send('POST', '/api/v1/boxes', { key: 'dcp_one_box' })
  t.equal(response.status, 403)
  t.match(response.json, { error: 'key_access_denied', scope: 'boxes' })
  t.equal((await send('GET', '/api/v1/boxes', { key: 'dcp_one_box' })).status, 200)
})

t.test('rejects CLI versions below the minimum', async (t) => {
  const { send } = await startTestServer(t, { control })
  const sendVersion = async (version: string) =>
    send('GET', '/api/v1/boxes', { headers: { 'x-service-cli-version': version } })
  for (const version of ['0.1.0', '0.99.99-beta', 'zero', '']) {
    const response = await sendVersion(version)
    t.equal(response.status, 426, version)
    t.match(response.json, { error: 'cli_update_required', minVersion: '1.0.0' })
  }
  for (const version of ['1.0.0-rc.1', '1.0.0', 'v1.0.0', '1.10.0'])
    t.equal((await sendVersion(version)).status, 200, version)
})
