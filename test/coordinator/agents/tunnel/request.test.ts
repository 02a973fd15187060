// Requests through a tunnel, from the coordinator to routes of the agent.
import { once } from 'node:events'
import { Readable } from 'node:stream'
import type { FastifyInstance } from 'fastify'
import t, { type Test } from 'tap'
import { ApiError } from '../../../../shared/errors.ts'
import { readAll, startTestAgent, startTunnelServer } from '../../../support/tunnel.ts'
import { DEADLINE_MS, waitUntil } from '../../../support/wait-until.ts'

async function openTunnel(t: Test, routes: (app: FastifyInstance) => void) {
  const coordinator = await startTunnelServer()
  t.after(() => coordinator.close())
  const box = coordinator.addBox()
  const agent = await startTestAgent(box, coordinator.url, routes)
  t.after(() => agent.close())
  const tunnel = await coordinator.tunnels.wait(box.boxId, DEADLINE_MS)
  return { coordinator, box, agent, tunnel }
}

/** An infinite stream of zeros. `onRead` is called with the size of each chunk. */
function createEndlessStream(onRead: (bytes: number) => void = () => undefined): Readable {
  return new Readable({
    read() {
      onRead(65_536)
      this.push(Buffer.alloc(65_536))
    },
  })
}

t.test('sends a request to the agent and returns its response', async (t) => {
  const { tunnel } = await openTunnel(t, (app) => {
    app.post('/echo', async (request, reply) => reply.header('x-kind', 'echo').status(201).send(request.body))
  })
  const response = await tunnel.request({
    method: 'POST',
    path: '/echo?q=1',
    headers: { 'content-type': 'application/json' },
    body: Buffer.from('{"hello":"box"}'),
  })
  t.equal(response.status, 201)
  t.equal(response.headers['x-kind'], 'echo')
  t.same(JSON.parse((await readAll(response.body)).toString()), { hello: 'box' })
})

t.test('the body stream of a response without a body ends', async (t) => {
  const { tunnel } = await openTunnel(t, (app) => {
    app.post('/nothing', async (_request, reply) => reply.status(204).send())
  })
  const { status, body } = await tunnel.request({ method: 'POST', path: '/nothing' })
  t.equal(status, 204)
  t.equal((await readAll(body)).length, 0)
})

t.test('the agent responds 404 in the edge envelope for an unknown path', async (t) => {
  const { tunnel } = await openTunnel(t, () => undefined)
  const response = await tunnel.request({ method: 'GET', path: '/nothing' })
  t.equal(response.status, 404)
  t.match(JSON.parse((await readAll(response.body)).toString()), { ok: false, error: { code: 'not_found' } })
})

t.test('aborting a request resets its stream on the agent', async (t) => {
  const reset = Promise.withResolvers<void>()
  const { tunnel } = await openTunnel(t, (app) => {
    app.get('/wait', (request, reply) => {
      reply.hijack()
      request.raw.once('close', () => reset.resolve())
    })
  })
  const abort = new AbortController()
  const response = tunnel.request({ method: 'GET', path: '/wait', signal: abort.signal })
  setImmediate(() => abort.abort())
  await t.rejects(response, { name: 'AbortError' })
  await reset.promise
})

t.test('an agent that does not respond in time is box_unreachable', async (t) => {
  const { tunnel } = await openTunnel(t, (app) => {
    app.get('/wait', (_request, reply) => void reply.hijack())
  })
  await t.rejects(tunnel.request({ method: 'GET', path: '/wait', headTimeoutMs: 30 }), {
    code: 'box_unreachable',
  })
})

t.test('a body truncated by a closed tunnel is an error', async (t) => {
  const { tunnel, coordinator, box } = await openTunnel(t, (app) => {
    app.get('/endless', (_request, reply) => reply.send(createEndlessStream()))
  })
  const { body } = await tunnel.request({ method: 'GET', path: '/endless' })
  await once(body, 'readable')
  coordinator.tunnels.disconnect(box.boxId, 'disconnected by the test')
  await t.rejects(readAll(body), { code: 'box_unreachable' })
  await t.rejects(tunnel.request({ method: 'GET', path: '/endless' }), ApiError)
})

t.test('a body truncated by the agent is an error', async (t) => {
  const { tunnel } = await openTunnel(t, (app) => {
    app.get('/truncated', (_request, reply) => {
      reply.hijack()
      reply.raw.writeHead(200)
      reply.raw.write('partial', () => reply.raw.destroy())
    })
  })
  const { body } = await tunnel.request({ method: 'GET', path: '/truncated' })
  await t.rejects(readAll(body), { code: 'box_unreachable' })
})

t.test('a reader that stops reading pauses the agent, and other requests are served', async (t) => {
  let produced = 0
  const { tunnel } = await openTunnel(t, (app) => {
    app.get('/endless', (_request, reply) => reply.send(createEndlessStream((bytes) => (produced += bytes))))
    app.get('/small', async () => ({ ok: true }))
  })
  const { body } = await tunnel.request({ method: 'GET', path: '/endless' })
  await once(body, 'readable')
  let last = -1
  await waitUntil('the agent is paused', async () => {
    const isUnchanged = produced === last
    last = produced
    const small = await tunnel.request({ method: 'GET', path: '/small' })
    await readAll(small.body)
    return isUnchanged
  })
  t.ok(produced < 8 * 1024 * 1024, `the agent produced ${produced} unread bytes`)
  body.destroy()
})

t.test('sends a streamed request body completely', async (t) => {
  let received = 0
  const { tunnel } = await openTunnel(t, (app) => {
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

t.test('a thousand small responses are all complete', async (t) => {
  const { tunnel } = await openTunnel(t, (app) => {
    app.get('/number/:n', async (request) => request.params)
  })
  let complete = 0
  const requestNumber = async (n: number) => {
    const { body } = await tunnel.request({ method: 'GET', path: `/number/${n}` })
    if ((await readAll(body)).toString() === `{"n":"${n}"}`) complete += 1
  }
  for (let n = 0; n < 1000; n += 8)
    await Promise.all(Array.from({ length: 8 }, (_, i) => requestNumber(n + i)))
  t.equal(complete, 1000)
})
