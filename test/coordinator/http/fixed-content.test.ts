// Content that is compressed once: encodings, ETag, and a load that fails.
import { gunzipSync } from 'node:zlib'
import Fastify, { type FastifyReply, type FastifyRequest } from 'fastify'
import t from 'tap'
import { createContentHandler } from '../../../coordinator/http/fixed-content.ts'

const TEXT = 'content '.repeat(1000)

async function openApp(load: () => Promise<string>) {
  const app = Fastify()
  app.route({ method: ['GET', 'HEAD'], url: '/', handler: createContentHandler('text/css', load) })
  await app.ready()
  return (headers: Record<string, string> = {}, method: 'GET' | 'HEAD' = 'GET') =>
    app.inject({ method, url: '/', headers })
}

t.test('loads and compresses once for many requests', async (t) => {
  let loads = 0
  const send = await openApp(async () => {
    loads++
    return TEXT
  })
  const responses = await Promise.all(Array.from({ length: 10 }, () => send({ 'accept-encoding': 'gzip' })))
  responses.push(await send({ 'accept-encoding': 'br, gzip;q=0.5' }))
  t.equal(loads, 1)
  for (const { headers, rawPayload } of responses) {
    t.match(headers, { 'content-encoding': 'gzip', 'content-type': 'text/css', vary: 'accept-encoding' })
    t.equal(gunzipSync(rawPayload).toString(), TEXT)
  }
})

t.test('sends the content itself to clients that do not accept gzip', async (t) => {
  const send = await openApp(async () => TEXT)
  for (const headers of [{}, { 'accept-encoding': 'br' }, { 'accept-encoding': 'gzip;q=0, identity' }]) {
    const response = await send(headers)
    t.equal(response.headers['content-encoding'], undefined)
    t.equal(response.payload, TEXT)
  }
  t.equal((await send({}, 'HEAD')).headers['content-length'], String(TEXT.length))
})

t.test('many responses that are not read need the memory of one', async (t) => {
  const handler = createContentHandler('text/css', async () => TEXT)
  const reply = { headers() {}, type() {}, send: (payload: unknown) => payload } as unknown as FastifyReply
  const request = { headers: {} } as FastifyRequest
  t.equal(await handler(request, reply), await handler(request, reply))
})

t.test('responds with 304 to a client that has the content', async (t) => {
  const send = await openApp(async () => TEXT)
  const { etag = '' } = (await send()).headers
  t.match(etag, /^W\/"[\w-]{22}"$/)
  t.equal((await send({ 'if-none-match': `"other", ${etag}` })).statusCode, 304)
  t.equal((await send({ 'if-none-match': '"other"' })).statusCode, 200)
})

t.test('loads again after a failure', async (t) => {
  let loads = 0
  const send = await openApp(async () => {
    if (loads++ === 0) throw new Error('the disk failed')
    return TEXT
  })
  t.equal((await send()).statusCode, 500)
  t.equal((await send()).payload, TEXT)
})
