// URLs that are not percent-encoded UTF-8 are rejected.
import t from 'tap'
import { z } from 'zod'
import { byKey } from '../../../coordinator/http/access.ts'
import { route } from '../../../coordinator/http/route.ts'
import { startTestServer } from './test-server.ts'

const echo = route({
  access: byKey('boxes', 'write'),
  method: 'GET',
  path: '/echo/:name',
  summary: 'Return the name and the query',
  request: { params: z.object({ name: z.string() }), query: z.object({ path: z.string().optional() }) },
  responses: { 200: z.object({}) },
  handler: async ({ params, query }) => ({ name: params.name, ...query }),
})

const INVALID = ['%ff', '%c3', '%c3%28', '%ed%a0%80', '%zz', '%']
const PREFIXES = { control: '/api/v1', edge: '/v1/box/apple' }

t.test('rejects a query that is not UTF-8', async (t) => {
  const { send } = await startTestServer(t, { control: [echo], edge: [echo] })
  for (const text of INVALID) {
    const target = (prefix: string) => `${prefix}/echo/a?path=x${text}`
    t.match(await send('GET', target(PREFIXES.edge)), {
      status: 400,
      json: { error: { code: 'invalid_path' } },
    })
    t.match(await send('GET', target(PREFIXES.control)), { status: 400, json: { error: 'bad_request' } })
  }
})

t.test('rejects a path that is not UTF-8', async (t) => {
  const { send } = await startTestServer(t, { control: [echo], edge: [echo] })
  for (const text of INVALID) {
    const target = (prefix: string) => `${prefix}/echo/x${text}`
    t.match(await send('GET', target(PREFIXES.edge)), {
      status: 400,
      json: { error: { code: 'invalid_path' } },
    })
    t.match(
      await send('GET', target(PREFIXES.control)),
      { status: 404, json: { error: 'not_found' } },
      'a malformed id of the control plane is not found',
    )
  }
})

t.test('accepts percent-encoded UTF-8', async (t) => {
  const { send } = await startTestServer(t, { control: [echo], edge: [echo] })
  for (const prefix of Object.values(PREFIXES)) {
    const { json } = await send('GET', `${prefix}/echo/gr%C3%BC%C3%9Fe?path=%e6%97%a5%E6%9C%AC+100%25`)
    t.same(json, { name: 'grüße', path: '日本 100%' })
  }
})
