// What limited keys may not do, and what an old box command is told.
import t from 'tap'
import { z } from 'zod'
import { type Route, route } from '../../../coordinator/http/route.ts'
import { actor, testServer } from './server.ts'

const make = (path: string, more: Partial<Route>) =>
  route({
    method: 'GET',
    path,
    summary: '',
    answers: { 200: z.object({}) },
    handle: async () => ({}),
    ...more,
  })
const control = [
  make('/boxes', {}),
  make('/boxes', { method: 'POST', workspaceWide: true }),
  make('/settings', { access: { area: 'workspace', level: 'write' } }),
  make('/me', { access: null }),
]
const keys = {
  dcp_reader: { actor: { ...actor, access: { boxes: 'read' as const } } },
  dcp_nothing: { actor: { ...actor, access: {} } },
  dcp_one_box: { actor: { ...actor, boxIds: ['0d1f6bd5-7a7e-4a52-9a3c-1f2f3c4d5e6f'] } },
}

t.test('a limited key is told what it lacks', async (t) => {
  const { send } = await testServer(t, { control, keys })
  const denied = async (key: string, method: string, path: string) => {
    const { status, json } = await send(method, `/api/v1${path}`, { key })
    t.equal(status, 403)
    t.equal(json.error, 'key_access_denied')
    return json
  }
  t.equal((await send('GET', '/api/v1/boxes', { key: 'dcp_reader' })).status, 200)
  const write = await denied('dcp_reader', 'POST', '/boxes')
  t.match(write, { area: 'boxes', level: 'write', message: /write access to boxes/ })
  t.match(await denied('dcp_nothing', 'GET', '/boxes'), { area: 'boxes', level: 'read' })
  t.match(await denied('dcp_reader', 'GET', '/settings'), { area: 'workspace', level: 'write' })
  for (const key of Object.keys(keys)) t.equal((await send('GET', '/api/v1/me', { key })).status, 200)
})

t.test('a key limited to boxes is kept from the workspace as a whole', async (t) => {
  const { send } = await testServer(t, { control, keys })
  const answer = await send('POST', '/api/v1/boxes', { key: 'dcp_one_box' })
  t.equal(answer.status, 403)
  t.match(answer.json, { error: 'key_access_denied', scope: 'boxes' })
  t.equal((await send('GET', '/api/v1/boxes', { key: 'dcp_one_box' })).status, 200)
})

t.test('an old box command must be updated', async (t) => {
  const { send } = await testServer(t, { control })
  const statusOf = async (version: string) =>
    send('GET', '/api/v1/boxes', { headers: { 'x-service-cli-version': version } })
  for (const version of ['0.0.9', '0.0.99-beta', 'zero', '']) {
    const answer = await statusOf(version)
    t.equal(answer.status, 426, version)
    t.match(answer.json, { error: 'cli_update_required', minVersion: '0.1.0' })
  }
  for (const version of ['0.1.0', '0.10.0', 'v1.0.0', '1.0.0-rc.1'])
    t.equal((await statusOf(version)).status, 200, version)
})
