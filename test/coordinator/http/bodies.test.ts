// What a request body may be on each host, and how a refusal names the field and its rule.
import { request as httpRequest } from 'node:http'
import t from 'tap'
import { z } from 'zod'
import { route } from '../../../coordinator/http/route.ts'
import { LIMITS } from '../../../shared/limits.ts'
import { testServer } from './server.ts'

const echo = route({
  method: 'POST',
  path: '/echo',
  summary: 'Says what it got',
  request: {
    query: z.object({ live: z.enum(['1', '0']).optional() }),
    body: z.object({ name: z.string().max(3).optional(), env: z.record(z.string(), z.string()).optional() }),
  },
  codes: { name: 'invalid_name' },
  answers: { 200: z.object({}) },
  handle: async ({ body }) => ({ got: body }),
})
const large = route({ ...echo, path: '/large', bodyLimit: 200_000 })
const bare = route({
  method: 'POST',
  path: '/bare',
  summary: 'Takes no body',
  answers: { 204: null },
  handle: async () => undefined,
})
const raw = route({
  method: 'PUT',
  path: '/raw',
  summary: 'Takes bytes',
  rawBody: true,
  answers: { 200: z.object({}) },
  handle: async ({ request }) => {
    let size = 0
    for await (const chunk of request.raw) size += chunk.length
    return { size }
  },
})
const routes = [echo, large, bare, raw]
const json = { 'content-type': 'application/json' }

for (const { host, prefix, code, codeOf } of [
  {
    host: 'control plane',
    prefix: '/api/v1',
    code: 'bad_request',
    codeOf: (body: { error: unknown }) => body.error,
  },
  {
    host: 'edge',
    prefix: '/v1/box/apple',
    code: 'invalid_request',
    codeOf: (body: { error: { code: unknown } }) => body.error.code,
  },
]) {
  t.test(host, async (t) => {
    const { send, url } = await testServer(t, { control: routes, edge: routes })
    const post = (body: unknown, headers?: Record<string, string>, path = '/echo') =>
      send('POST', prefix + path, { body, ...(headers && { headers }) })

    t.same(
      (await post({ name: 'abc', later: 1 })).json,
      { got: { name: 'abc' } },
      'unknown fields are ignored',
    )
    t.same((await post(undefined)).json, { got: {} }, 'no body is one with nothing in it')
    t.equal((await post('{}', { 'content-type': 'application/json; charset=utf-8' })).status, 200)

    for (const [what, body, headers] of [
      ['not JSON', '{"name":', json],
      ['nothing, called JSON', '', json],
      ['a list', '[]', json],
      ['a string', '"a"', json],
      ['null', 'null', json],
      ['not UTF-8', new Uint8Array([0x7b, 0x22, 0xff, 0x22, 0x3a, 0x31, 0x7d]), json],
      ['a prototype', '{"env":{"__proto__":"x"}}', json],
      ['gzip', new Uint8Array([0x1f, 0x8b]), { ...json, 'content-encoding': 'gzip' }],
      ['over the cap', JSON.stringify({ name: 'a'.repeat(LIMITS.jsonBodyBytes) }), json],
    ] as const) {
      const answer = await post(body, headers)
      t.equal(answer.status, 400, what)
      t.equal(codeOf(answer.json), code, what)
    }

    const form = await post('{"name":"a"}', { 'content-type': 'application/x-www-form-urlencoded' })
    t.equal(form.status, 400)
    t.match(form.text, 'Content-Type: application/json')

    const name = await post({ name: 'abcd' })
    t.equal(codeOf(name.json), 'invalid_name', 'a field has a code of its own')
    t.match(name.text, /name: /)
    const env = await post({ env: { A: 1 } })
    t.equal(codeOf(env.json), code)
    t.match(env.text, /env\.A: .*string/)
    t.match((await send('POST', `${prefix}/echo?live=2`, { body: {} })).text, /live: /)
    t.equal((await send('POST', `${prefix}/echo?live=1&live=0`, { body: {} })).status, 400)

    const filler = { padding: 'a'.repeat(LIMITS.jsonBodyBytes) }
    t.equal((await post(filler, undefined, '/large')).status, 200, 'a route may have a larger cap')
    const over = await post({ padding: 'a'.repeat(200_000) }, undefined, '/large')
    t.equal(over.status, host === 'edge' ? 413 : 400)
    t.equal(codeOf(over.json), host === 'edge' ? 'payload_too_large' : 'bad_request')
    const huge = await post('a'.repeat(5_000_000), json)
    t.equal(huge.status, 400, 'a client that sends far too much gets to see the answer')

    t.equal((await post(undefined, undefined, '/bare')).status, 204)
    t.equal((await post('', json, '/bare')).status, 204)
    t.equal((await post('nonsense', json, '/bare')).status, 400)

    const bytes = new Uint8Array(300_000)
    t.same((await send('PUT', `${prefix}/raw`, { body: bytes })).json, { size: 300_000 })
    t.same((await send('PUT', `${prefix}/raw`, { body: bytes, headers: json })).json, { size: 300_000 })

    t.equal(await statusOfUnsent(`${url}${prefix}/echo`), 401, 'the key is checked before the body has come')
  })
}

/** The status of a request whose promised body is never sent. */
function statusOfUnsent(url: string): Promise<number | undefined> {
  return new Promise((resolve, reject) => {
    const request = httpRequest(url, { method: 'POST', headers: { ...json, 'content-length': '1000' } })
    request.on('response', (response) => {
      resolve(response.statusCode)
      request.destroy()
    })
    request.once('error', reject)
    request.flushHeaders()
  })
}
