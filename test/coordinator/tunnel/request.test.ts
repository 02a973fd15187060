import { once } from 'node:events'
import { Readable } from 'node:stream'
import type { FastifyInstance } from 'fastify'
import t, { type Test } from 'tap'
import { ApiError } from '../../../shared/errors.ts'
import { readAll, startTestAgent, startTestCoordinator, waitUntil } from '../../support/tunnel.ts'

async function pair(t: Test, routes: (app: FastifyInstance) => void) {
  const coordinator = await startTestCoordinator()
  t.after(() => coordinator.close())
  const box = coordinator.addBox()
  const agent = await startTestAgent(box, coordinator.url, routes)
  t.after(() => agent.close())
  const tunnel = await coordinator.tunnels.wait(box.boxId, 5000)
  return { coordinator, box, agent, tunnel }
}

t.test('a request reaches the agent and its answer comes back', async (t) => {
  const { tunnel } = await pair(t, (app) => {
    app.post('/echo', async (request, reply) => reply.header('x-kind', 'echo').status(201).send(request.body))
  })
  const answer = await tunnel.request({
    method: 'POST',
    path: '/echo?q=1',
    headers: { 'content-type': 'application/json' },
    body: Buffer.from('{"hello":"box"}'),
  })
  t.equal(answer.status, 201)
  t.equal(answer.headers['x-kind'], 'echo')
  t.same(JSON.parse((await readAll(answer.body)).toString()), { hello: 'box' })
})

t.test('an answer without a body ends', async (t) => {
  const { tunnel } = await pair(t, (app) => {
    app.post('/nothing', async (_request, reply) => reply.status(204).send())
  })
  const { status, body } = await tunnel.request({ method: 'POST', path: '/nothing' })
  t.equal(status, 204)
  t.equal((await readAll(body)).length, 0)
})

t.test('a path the agent does not know answers 404 in the edge envelope', async (t) => {
  const { tunnel } = await pair(t, () => undefined)
  const answer = await tunnel.request({ method: 'GET', path: '/nothing' })
  t.equal(answer.status, 404)
  t.match(JSON.parse((await readAll(answer.body)).toString()), { ok: false, error: { code: 'not_found' } })
})

t.test('aborting resets the stream on the box too', async (t) => {
  const reset = Promise.withResolvers<void>()
  const { tunnel } = await pair(t, (app) => {
    app.get('/wait', (request, reply) => {
      reply.hijack()
      request.raw.once('close', () => reset.resolve())
    })
  })
  const abort = new AbortController()
  const answer = tunnel.request({ method: 'GET', path: '/wait', signal: abort.signal })
  setImmediate(() => abort.abort())
  await t.rejects(answer, { name: 'AbortError' })
  await reset.promise
})

t.test('an agent that never answers is box_unreachable after the deadline', async (t) => {
  const { tunnel } = await pair(t, (app) => {
    app.get('/wait', (_request, reply) => void reply.hijack())
  })
  await t.rejects(tunnel.request({ method: 'GET', path: '/wait', headTimeoutMs: 30 }), {
    code: 'box_unreachable',
  })
})

t.test('a body whose tunnel dies is an error, not an end', async (t) => {
  const { tunnel, coordinator, box } = await pair(t, (app) => {
    app.get('/endless', (_request, reply) => reply.send(endless()))
  })
  const { body } = await tunnel.request({ method: 'GET', path: '/endless' })
  await once(body, 'readable')
  coordinator.tunnels.disconnect(box.boxId, 'for the test')
  await t.rejects(readAll(body), { code: 'box_unreachable' })
  await t.rejects(tunnel.request({ method: 'GET', path: '/endless' }), ApiError)
})

t.test('a body the agent breaks off is an error, not an end', async (t) => {
  const { tunnel } = await pair(t, (app) => {
    app.get('/broken', (_request, reply) => {
      reply.hijack()
      reply.raw.writeHead(200)
      reply.raw.write('begun', () => reply.raw.destroy())
    })
  })
  const { body } = await tunnel.request({ method: 'GET', path: '/broken' })
  await t.rejects(readAll(body), { code: 'box_unreachable' })
})

t.test('a reader that stops reading stops the box from producing, and others go on', async (t) => {
  let produced = 0
  const { tunnel } = await pair(t, (app) => {
    app.get('/endless', (_request, reply) => reply.send(endless((bytes) => (produced += bytes))))
    app.get('/small', async () => ({ ok: true }))
  })
  const { body } = await tunnel.request({ method: 'GET', path: '/endless' })
  await once(body, 'readable')
  let last = -1
  await waitUntil('the box stops producing', async () => {
    const same = produced === last
    last = produced
    const small = await tunnel.request({ method: 'GET', path: '/small' })
    await readAll(small.body)
    return same
  })
  t.ok(produced < 8 * 1024 * 1024, `${produced} bytes were produced for nobody`)
  body.destroy()
})

t.test('a streamed request body arrives whole', async (t) => {
  let received = 0
  const { tunnel } = await pair(t, (app) => {
    app.addContentTypeParser('application/octet-stream', (_request, payload, done) => done(null, payload))
    app.post('/count', async (request) => {
      for await (const chunk of request.body as AsyncIterable<Buffer>) received += chunk.length
      return { received }
    })
  })
  const size = 5_000_000
  const { body } = await tunnel.request({
    method: 'POST',
    path: '/count',
    headers: { 'content-type': 'application/octet-stream' },
    body: Readable.from(
      (function* () {
        for (let sent = 0; sent < size; sent += 100_000) yield Buffer.alloc(100_000)
      })(),
    ),
  })
  t.same(JSON.parse((await readAll(body)).toString()), { received: size })
})

function endless(count: (bytes: number) => void = () => undefined): Readable {
  return new Readable({
    read() {
      count(65_536)
      this.push(Buffer.alloc(65_536))
    },
  })
}

t.test('of a thousand small answers every one is whole', async (t) => {
  const { tunnel } = await pair(t, (app) => {
    app.get('/number/:n', async (request) => request.params)
  })
  let whole = 0
  const ask = async (n: number) => {
    const { body } = await tunnel.request({ method: 'GET', path: `/number/${n}` })
    if ((await readAll(body)).toString() === `{"n":"${n}"}`) whole += 1
  }
  for (let n = 0; n < 1000; n += 8) await Promise.all(Array.from({ length: 8 }, (_, i) => ask(n + i)))
  t.equal(whole, 1000)
})
