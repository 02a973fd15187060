// Request bodies on each host: formats, size limits, and messages that name the field and its rule.
import { request as httpRequest } from 'node:http'
import t from 'tap'
import { z } from 'zod'
import { byKey } from '../../../coordinator/http/access.ts'
import { route } from '../../../coordinator/http/route.ts'
import { LIMITS } from '../../../shared/limits.ts'
import { startTestServer } from './test-server.ts'

const echo = route({
  access: byKey('boxes', 'write'),
  method: 'POST',
  path: '/echo',
  summary: 'Return the body',
  request: {
    query: z.object({ live: z.enum(['1', '0']).optional() }),
    body: z.object({ name: z.string().max(3).optional(), env: z.record(z.string(), z.string()).optional() }),
  },
  fieldErrorCodes: { name: 'invalid_name' },
  responses: { 200: z.object({}) },
  handler: async ({ body }) => ({ received: body }),
})
const large = route({ ...echo, path: '/large', bodyLimit: 200_000 })
const noBody = route({
  access: byKey('boxes', 'write'),
  method: 'POST',
  path: '/no-body',
  summary: 'Accept no body',
  responses: { 204: null },
  handler: async () => undefined,
})
const raw = route({
  access: byKey('boxes', 'write'),
  method: 'PUT',
  path: '/raw',
  summary: 'Accept bytes',
  rawBody: true,
  responses: { 200: z.object({}) },
  handler: async ({ request }) => {
    let size = 0
    for await (const chunk of request.raw) size += chunk.length
    return { size }
  },
})
const routes = [echo, large, noBody, raw]
const jsonHeaders = { 'content-type': 'application/json' }

for (const { host, prefix, invalidBodyCode, getErrorCode } of [
  {
    host: 'control plane',
    prefix: '/api/v1',
    invalidBodyCode: 'bad_request',
    getErrorCode: (body: { error: unknown }) => body.error,
  },
  {
    host: 'edge',
    prefix: '/v1/box/apple',
    invalidBodyCode: 'invalid_request',
    getErrorCode: (body: { error: { code: unknown } }) => body.error.code,
  },
]) {
  t.test(`${host}: validates request bodies and limits their size`, async (t) => {
    const { send, url } = await startTestServer(t, { control: routes, edge: routes })
    const post = (body: unknown, headers?: Record<string, string>, path = '/echo') =>
      send('POST', prefix + path, { body, ...(headers && { headers }) })

    t.same(
      (await post({ name: 'abc', unknown: 1 })).json,
      { received: { name: 'abc' } },
      'unknown fields are ignored',
    )
    t.same((await post(undefined)).json, { received: {} }, 'no body is treated as an empty object')
    t.equal((await post('{}', { 'content-type': 'application/json; charset=utf-8' })).status, 200)

    for (const [description, body, headers] of [
      ['not JSON', '{"name":', jsonHeaders],
      ['empty, with the JSON content type', '', jsonHeaders],
      ['an array', '[]', jsonHeaders],
      ['a string', '"a"', jsonHeaders],
      ['null', 'null', jsonHeaders],
      ['not UTF-8', new Uint8Array([0x7b, 0x22, 0xff, 0x22, 0x3a, 0x31, 0x7d]), jsonHeaders],
      ['a __proto__ key', '{"env":{"__proto__":"x"}}', jsonHeaders],
      ['an unpaired surrogate', '{"unknown":["\\ud800"]}', jsonHeaders],
      ['too deeply nested', `{"unknown":${'['.repeat(20_000)}${']'.repeat(20_000)}}`, jsonHeaders],
      ['an unknown Content-Encoding', '{}', { ...jsonHeaders, 'content-encoding': 'x-unknown' }],
      ['gzip', new Uint8Array([0x1f, 0x8b]), { ...jsonHeaders, 'content-encoding': 'gzip' }],
      ['over the size limit', JSON.stringify({ name: 'a'.repeat(LIMITS.jsonBodyBytes) }), jsonHeaders],
    ] as const) {
      const response = await post(body, headers)
      t.equal(response.status, 400, description)
      t.equal(getErrorCode(response.json), invalidBodyCode, description)
    }

    t.match(
      (await post('{"env":{"__proto__":"x"}}', jsonHeaders)).text,
      '"env must not have a field named __proto__"',
    )
    const text = '{"env":{"A":"\\ud83d\\ude00","constructor":"x"},"unknown":[[["a"]]]}'
    t.same(
      (await post(`\uFEFF${text}`, jsonHeaders)).json,
      { received: { env: { A: '😀', constructor: 'x' } } },
      'a surrogate pair, any other field name and a byte order mark are accepted',
    )

    const formResponse = await post('{"name":"a"}', { 'content-type': 'application/x-www-form-urlencoded' })
    t.equal(formResponse.status, 400)
    t.match(formResponse.text, 'Content-Type: application/json')

    const invalidName = await post({ name: 'abcd' })
    t.equal(getErrorCode(invalidName.json), 'invalid_name', 'a field can have its own code')
    t.match(invalidName.text, '"name must have at most 3 characters"')
    const invalidEnv = await post({ env: { A: 1 } })
    t.equal(getErrorCode(invalidEnv.json), invalidBodyCode)
    t.match(invalidEnv.text, '"env.A must be a string"')
    const invalidLive = await send('POST', `${prefix}/echo?live=2`, { body: {} })
    t.match(invalidLive.text, '"live must be one of 0, 1"')
    const repeatedLive = await send('POST', `${prefix}/echo?live=1&live=0`, { body: {} })
    t.equal(repeatedLive.status, 400)
    t.match(repeatedLive.text, '"live must be given only once"')

    const padded = { padding: 'a'.repeat(LIMITS.jsonBodyBytes) }
    t.equal((await post(padded, undefined, '/large')).status, 200, 'a route can have a larger size limit')
    const tooLarge = await post({ padding: 'a'.repeat(200_000) }, undefined, '/large')
    t.equal(tooLarge.status, host === 'edge' ? 413 : 400)
    t.equal(getErrorCode(tooLarge.json), host === 'edge' ? 'payload_too_large' : 'bad_request')
    const farTooLarge = await post('a'.repeat(5_000_000), jsonHeaders)
    t.equal(farTooLarge.status, 400, 'a client that sends far too much receives the error response')

    t.equal((await post(undefined, undefined, '/no-body')).status, 204)
    t.equal((await post('', jsonHeaders, '/no-body')).status, 204)
    t.equal((await post('not JSON', jsonHeaders, '/no-body')).status, 400)

    const bytes = new Uint8Array(300_000)
    t.same((await send('PUT', `${prefix}/raw`, { body: bytes })).json, { size: 300_000 })
    t.same((await send('PUT', `${prefix}/raw`, { body: bytes, headers: jsonHeaders })).json, {
      size: 300_000,
    })

    const encoded = await send('PUT', `${prefix}/raw`, {
      body: bytes,
      headers: { 'content-encoding': 'x-unknown' },
    })
    t.equal(encoded.status, 400)
    t.match(encoded.text, 'without Content-Encoding')
    const identity = { 'content-encoding': 'identity' }
    t.equal((await send('PUT', `${prefix}/raw`, { body: bytes, headers: identity })).status, 200)

    t.equal(await sendHeadersOnly(`${url}${prefix}/echo`), 401, 'the key is checked before the body arrives')
  })
}

/** Returns the status of a request whose body is never sent. */
function sendHeadersOnly(url: string): Promise<number | undefined> {
  return new Promise((resolve, reject) => {
    const request = httpRequest(url, {
      method: 'POST',
      headers: { ...jsonHeaders, 'content-length': '1000' },
    })
    request.on('response', (response) => {
      resolve(response.statusCode)
      request.destroy()
    })
    request.once('error', reject)
    request.flushHeaders()
  })
}
