// Requests through a tunnel, from the coordinator to routes of the agent.
import { once } from 'node:events'
import { setImmediate } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { EMPTY_RESPONSE, type JsonRouter, RequestResetError } from '../../../../agent/requests/json-routes.ts'
import type { TunnelCall } from '../../../../coordinator/agents/tunnel/types.ts'
import { ApiError } from '../../../../shared/errors.ts'
import { TUNNEL_LIMITS } from '../../../../shared/limits.ts'
import { PROTOCOL_VERSION } from '../../../../shared/protocol.ts'
import { startTestAgent, startTunnelServer } from '../../../support/tunnel.ts'
import { DEADLINE_MS, LONG_DEADLINE_MS } from '../../../support/wait-until.ts'

const MiB = 1024 * 1024
const GET = { method: 'GET', timeoutMs: DEADLINE_MS } as const
const LARGE_TEXT = 'é"\n'.repeat(TUNNEL_LIMITS.messageBytes)

async function connect(t: Test, routes: (router: JsonRouter) => void) {
  const coordinator = await startTunnelServer()
  t.after(() => coordinator.close())
  const box = coordinator.addBox()
  const agent = await startTestAgent(box, coordinator.url, routes)
  t.after(() => agent.close())
  const tunnel = await coordinator.tunnels.wait(box.boxId, DEADLINE_MS)
  t.equal(tunnel.protocolVersion, PROTOCOL_VERSION)
  const call = async (request: TunnelCall) => {
    const { status, body } = await tunnel.call(request)
    return { status, body: body.toString() }
  }
  return { coordinator, box, agent, tunnel, call }
}

t.test('requests and responses', async (t) => {
  const { call } = await connect(t, (router) => {
    router.add('POST', '/echo/:name', ({ params, query, body, headers }) => ({
      ...{ params, query, body },
      kind: headers['x-kind'],
    }))
    router.add('GET', '/nothing', () => undefined)
    router.add('GET', '/empty', () => EMPTY_RESPONSE)
    router.add('GET', '/lines', () => Buffer.from('{"a":1}\n{"b":"é"}\n'))
    router.add('GET', '/large', () => ({ text: LARGE_TEXT }))
    router.add('GET', '/large-error', () => {
      throw new ApiError('not_found', LARGE_TEXT)
    })
    router.add('POST', '/size', ({ body }) => (body as { text: string }).text.length)
    router.add('GET', '/refused', () => {
      throw new ApiError('permission_denied', 'No.')
    })
    router.add('GET', '/defect', async () => {
      throw new Error('a defect')
    })
  })
  const echoed = await call({
    ...{ method: 'POST', timeoutMs: DEADLINE_MS },
    path: '/echo/a%20b?q=1&r=x%26y?z&q=2',
    headers: { 'x-kind': 'test' },
    body: '{"hello":"box"}',
  })
  t.equal(echoed.status, 200)
  t.same(JSON.parse(echoed.body), {
    params: { name: 'a b' },
    query: { q: ['1', '2'], r: 'x&y?z' },
    body: { hello: 'box' },
    kind: 'test',
  })
  t.same(await call({ ...GET, path: '/nothing' }), { status: 204, body: '' })
  t.same(await call({ ...GET, path: '/empty' }), { status: 200, body: '' })
  t.same(await call({ ...GET, path: '/lines' }), { status: 200, body: '{"a":1}\n{"b":"é"}\n' })

  const maxBytes = () => 4 * LARGE_TEXT.length
  const large = await call({ ...GET, path: '/large', maxBytes })
  t.equal(JSON.parse(large.body).text, LARGE_TEXT)
  const largeError = await call({ ...GET, path: '/large-error', maxBytes })
  t.equal(largeError.status, 404)
  t.equal(JSON.parse(largeError.body).error.message, LARGE_TEXT)
  const body = JSON.stringify({ text: LARGE_TEXT })
  const size = await call({ method: 'POST', path: '/size', body, timeoutMs: DEADLINE_MS })
  t.same(size, { status: 200, body: String(LARGE_TEXT.length) })

  for (const [path, status, code] of [
    ['/refused', 403, 'permission_denied'],
    ['/defect', 500, 'internal_error'],
    ['/unknown', 404, 'not_found'],
    ['/echo/a', 404, 'not_found'],
  ] as const) {
    const response = await call({ ...GET, path })
    t.equal(response.status, status, path)
    t.match(JSON.parse(response.body), { ok: false, error: { code } }, path)
  }
  const invalid = await call({ method: 'POST', path: '/size', body: '{', timeoutMs: DEADLINE_MS })
  t.equal(invalid.status, 400)
  t.match(JSON.parse(invalid.body), { error: { code: 'bad_request' } })
})

t.test('failures', async (t) => {
  const aborted: string[] = []
  const started = Promise.withResolvers<void>()
  const { call, coordinator, box } = await connect(t, (router) => {
    router.add('GET', '/wait', async ({ signal, query }) => {
      started.resolve()
      await once(signal, 'abort')
      aborted.push(String((query as { name: string }).name))
    })
    router.add('GET', '/stopping', () => {
      throw new RequestResetError()
    })
    router.add('GET', '/large', () => ({ text: LARGE_TEXT }))
  })
  const controller = new AbortController()
  const cancelled = call({ ...GET, path: '/wait?name=cancelled', signal: controller.signal })
  await started.promise
  controller.abort(new Error('the client disconnected'))
  await t.rejects(cancelled, { message: 'the client disconnected' })
  await t.rejects(call({ ...GET, path: '/wait', signal: controller.signal }), {
    message: 'the client disconnected',
  })
  await t.rejects(call({ ...GET, path: '/wait?name=late', timeoutMs: 20 }), {
    code: 'box_unreachable',
    message: /in time/,
  })
  await t.rejects(call({ ...GET, path: '/stopping' }), { code: 'box_unreachable' })
  await t.rejects(call({ ...GET, path: '/large' }), { code: 'exec_failed', message: /exceeds 65536 bytes/ })

  const cut = call({ ...GET, path: '/wait?name=cut' })
  const last = call({ ...GET, path: '/wait?name=last' })
  coordinator.tunnels.disconnect(box.boxId, 'disconnected by the test')
  await t.rejects(cut, { code: 'box_unreachable' })
  await t.rejects(last, { code: 'box_unreachable' })
  await coordinator.tunnels.wait(box.boxId, DEADLINE_MS)
  t.match(aborted.slice(0, 2), ['cancelled', 'late'], 'the agent stopped the work')
})

t.test('a body of any size arrives unchanged, and other requests are served meanwhile', async (t) => {
  const { call } = await connect(t, (router) => {
    router.add('POST', '/echo', ({ body }) => body)
    router.add('GET', '/small', () => 1)
  })
  const maxBytes = () => TUNNEL_LIMITS.requestBytes
  const echo = async (length: number) => {
    // Characters of two bytes, so that chunks end within them.
    const body = JSON.stringify(`x${'é'.repeat(length / 2)}`)
    const echoed = await call({ method: 'POST', path: '/echo', body, timeoutMs: LONG_DEADLINE_MS, maxBytes })
    t.ok(echoed.status === 200 && echoed.body === body, `${length} bytes`)
  }
  const { messageBytes, requestBytes } = TUNNEL_LIMITS
  const large = [messageBytes - 4, messageBytes, MiB, 3 * MiB + 2, requestBytes - 4].map(echo)
  for (let n = 0; n < 100; n++) t.equal((await call({ ...GET, path: '/small' })).body, '1')
  await Promise.all(large)
  const body = JSON.stringify('x'.repeat(requestBytes))
  t.match(await call({ method: 'POST', path: '/echo', body, timeoutMs: DEADLINE_MS }), {
    status: 413,
    body: /payload_too_large/,
  })
})

t.test('large responses that are cancelled, too large or cut free their ids', async (t) => {
  const large = Buffer.alloc(4 * MiB, 'x')
  const { call, coordinator, box } = await connect(t, (router) => {
    router.add('GET', '/large', () => large)
    router.add('GET', '/small', () => 1)
  })
  const maxBytes = () => 16 * MiB
  // More in all than the ids of a connection.
  for (let round = 0; round < 6; round++) {
    await t.rejects(call({ ...GET, path: '/large' }), { code: 'exec_failed' })
    const controllers = Array.from({ length: 50 }, () => new AbortController())
    const cancelled = controllers.map(({ signal }) => call({ ...GET, path: '/large', maxBytes, signal }))
    const outcomes = Promise.allSettled(cancelled)
    for (const [index, controller] of controllers.entries()) {
      if (index % 8 === 0) await setImmediate()
      controller.abort(new Error('the client disconnected'))
    }
    for (const { status } of await outcomes) t.equal(status, 'rejected')
    t.equal((await call({ ...GET, path: '/large', maxBytes })).body.length, large.length)
  }
  const cut = call({ ...GET, path: '/large', maxBytes })
  await call({ ...GET, path: '/small' })
  coordinator.tunnels.disconnect(box.boxId, 'disconnected by the test')
  await t.rejects(cut, { code: 'box_unreachable' })
})

t.test('more large responses than the coordinator receives at once are all complete', async (t) => {
  const size = 12 * MiB
  const { call } = await connect(t, (router) => router.add('GET', '/large', () => Buffer.alloc(size, 'x')))
  const responses = Array.from({ length: 12 }, () =>
    call({ ...GET, path: '/large', maxBytes: () => size, timeoutMs: LONG_DEADLINE_MS }),
  )
  for (const { body } of await Promise.all(responses)) t.equal(body.length, size)
})

t.test('more requests than ids are all served', async (t) => {
  const release = Promise.withResolvers<void>()
  const { call } = await connect(t, (router) => {
    router.add('GET', '/wait', () => release.promise)
    router.add('GET', '/number/:n', ({ params }) => params)
  })
  const waiting = Array.from({ length: TUNNEL_LIMITS.openCalls }, () => call({ ...GET, path: '/wait' }))
  const numbers = Array.from({ length: 1000 }, (_, n) => call({ ...GET, path: `/number/${n}` }))
  await t.rejects(call({ ...GET, path: '/number/late', timeoutMs: 20 }), { message: /in time/ })
  release.resolve()
  for (const { status } of await Promise.all(waiting)) t.equal(status, 204)
  const bodies = (await Promise.all(numbers)).map(({ body }) => body)
  t.same(
    bodies,
    bodies.map((_, n) => `{"n":"${n}"}`),
  )
})
