// 401, 404, 405 and 500 in the envelope of each host.
import t from 'tap'
import { z } from 'zod'
import { route } from '../../../coordinator/http/route.ts'
import { ApiError } from '../../../shared/errors.ts'
import { testServer } from './server.ts'

const thing = (method: 'GET' | 'DELETE') =>
  route({
    method,
    path: '/things/:id',
    summary: 'A thing',
    request: { params: z.object({ box: z.string().optional(), id: z.uuid() }) },
    answers: { 200: z.object({}) },
    handle: async () => ({}),
  })
const broken = route({
  method: 'GET',
  path: '/broken',
  summary: 'Fails',
  answers: { 200: z.object({}) },
  handle: async () => {
    throw new Error('the secret plan')
  },
})
const refusing = route({
  method: 'GET',
  path: '/refusing',
  summary: 'Refuses',
  answers: { 200: z.object({}) },
  handle: async () => {
    throw new ApiError('rate_limited', undefined, { headers: { 'retry-after': '3' }, fields: { extra: 1 } })
  },
})
const routes = [thing('GET'), thing('DELETE'), broken, refusing]
const ID = '0d1f6bd5-7a7e-4a52-9a3c-1f2f3c4d5e6f'

/** The code in either envelope; a body of another shape gives undefined. */
const controlCode = ({ error }: { error?: unknown }) => error
const edgeCode = ({ ok, error }: { ok?: unknown; error?: { code?: unknown } }) =>
  ok === false ? error?.code : undefined

for (const { name, prefix, codeOf } of [
  { name: 'control plane', prefix: '/api/v1', codeOf: controlCode },
  { name: 'edge', prefix: '/v1/box/apple', codeOf: edgeCode },
]) {
  t.test(name, async (t) => {
    const server = await testServer(t, {
      control: routes,
      edge: routes,
      keys: {
        dcp_expired: { refused: 'expired', expiresAt: Date.UTC(2020, 0, 1) },
        dcp_revoked: { refused: 'revoked' },
      },
    })
    const { send } = server

    for (const path of [`${prefix}/things/${ID}`, `${prefix}/nothing`, `${prefix}/%zz`, `${prefix}/broken`]) {
      const answer = await send('GET', path, { key: null })
      t.equal(answer.status, 401, `without a key: ${path}`)
      t.equal(codeOf(answer.json), 'unauthorized')
    }
    for (const key of ['dcp_other', 'dcp_revoked', 'owner']) {
      const answer = await send('GET', `${prefix}/refusing`, { key })
      t.equal(codeOf(answer.json), 'unauthorized', key)
    }
    const late = await send('GET', `${prefix}/refusing`, { key: 'dcp_expired' })
    t.equal(late.status, 401)
    t.equal(codeOf(late.json), 'token_expired')
    t.match(late.text, '"expiresAt":"2020-01-01T00:00:00.000Z"')

    for (const path of ['/nothing', '/things/not-a-uuid', '/%zz', `/things/${'a'.repeat(600)}`, '/things/']) {
      const answer = await send('GET', prefix + path)
      t.equal(answer.status, 404, `unknown: ${path.slice(0, 30)}`)
      t.equal(codeOf(answer.json), 'not_found')
    }
    for (const method of ['POST', 'PUT', 'PATCH', 'HEAD', 'OPTIONS', 'PROPFIND']) {
      const answer = await send(method, `${prefix}/things/${ID}`)
      t.equal(answer.status, 405, method)
      t.equal(answer.headers.get('allow'), 'DELETE, GET')
      if (method !== 'HEAD') t.equal(codeOf(answer.json), 'method_not_allowed')
    }

    const refusal = await send('GET', `${prefix}/refusing`)
    t.equal(refusal.status, 429)
    t.equal(refusal.headers.get('retry-after'), '3')
    t.match(refusal.text, '"extra":1')

    const failure = await send('GET', `${prefix}/broken`)
    t.equal(failure.status, 500)
    t.equal(codeOf(failure.json), 'internal_error')
    t.notMatch(failure.text, 'secret')
    const requestId = failure.headers.get('x-request-id')
    t.ok(
      server.logged.some((line) => line.includes('the secret plan') && line.includes(`"${requestId}"`)),
      'the log has the error under the id that the answer carries',
    )
  })
}

t.test('outside both hosts nothing needs a key, and nothing is there', async (t) => {
  const { send } = await testServer(t)
  for (const path of ['/', '/api', '/api/v10', '/v12/box/a', '/favicon.ico', '/%zz']) {
    const answer = await send('GET', path, { key: null })
    t.equal(answer.status, 404, path)
    t.equal(answer.json.error, 'not_found')
  }
})
