// Calls through a tunnel give the same responses as messages and over HTTP/2.
import { once } from 'node:events'
import { Readable } from 'node:stream'
import type { FastifyInstance } from 'fastify'
import t, { type Test } from 'tap'
import { addJsonRoute, EMPTY_RESPONSE, RequestResetError } from '../../../../agent/requests/json-routes.ts'
import { callByRequest } from '../../../../coordinator/agents/tunnel/calls.ts'
import type { TunnelCall, TunnelRequest } from '../../../../coordinator/agents/tunnel/types.ts'
import { ApiError } from '../../../../shared/errors.ts'
import { TUNNEL_LIMITS } from '../../../../shared/limits.ts'
import { PREVIOUS_PROTOCOL_VERSION, PROTOCOL_VERSION } from '../../../../shared/protocol.ts'
import { startTestAgent, startTunnelServer } from '../../../support/tunnel.ts'
import { DEADLINE_MS, waitUntil } from '../../../support/wait-until.ts'

const WAYS = [
  ['as messages', PROTOCOL_VERSION],
  ['over HTTP/2', PREVIOUS_PROTOCOL_VERSION],
] as const
const GET = { method: 'GET', timeoutMs: DEADLINE_MS } as const
const LARGE_TEXT = 'é"\n'.repeat(TUNNEL_LIMITS.messageBytes)

async function connect(t: Test, version: number, routes: (app: FastifyInstance) => void) {
  const coordinator = await startTunnelServer({ acceptedVersions: [version] })
  t.after(() => coordinator.close())
  const box = coordinator.addBox()
  const agent = await startTestAgent(box, coordinator.url, routes)
  t.after(() => agent.close())
  const tunnel = await coordinator.tunnels.wait(box.boxId, DEADLINE_MS)
  t.equal(tunnel.protocolVersion, version)
  const call = async (request: TunnelCall) => {
    const { status, body } = await tunnel.call(request)
    return { status, body: body.toString() }
  }
  return { coordinator, box, agent, tunnel, call }
}

for (const [way, version] of WAYS) {
  t.test(`requests and responses ${way}`, async (t) => {
    const { call } = await connect(t, version, (app) => {
      addJsonRoute(app, 'POST', '/echo/:name', ({ params, query, body, headers }) => ({
        ...{ params, query, body },
        kind: headers['x-kind'],
      }))
      addJsonRoute(app, 'GET', '/nothing', () => undefined)
      addJsonRoute(app, 'GET', '/empty', () => EMPTY_RESPONSE)
      addJsonRoute(app, 'GET', '/lines', () => Buffer.from('{"a":1}\n{"b":"é"}\n'))
      addJsonRoute(app, 'GET', '/large', () => ({ text: LARGE_TEXT }))
      addJsonRoute(app, 'GET', '/large-error', () => {
        throw new ApiError('not_found', LARGE_TEXT)
      })
      addJsonRoute(app, 'POST', '/size', ({ body }) => (body as { text: string }).text.length)
      addJsonRoute(app, 'GET', '/refused', () => {
        throw new ApiError('permission_denied', 'No.')
      })
      addJsonRoute(app, 'GET', '/defect', async () => {
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

  t.test(`failures ${way}`, async (t) => {
    const aborted: string[] = []
    const started = Promise.withResolvers<void>()
    const { call, coordinator, box } = await connect(t, version, (app) => {
      addJsonRoute(app, 'GET', '/wait', async ({ signal, query }) => {
        started.resolve()
        await once(signal, 'abort')
        aborted.push(String((query as { name: string }).name))
      })
      addJsonRoute(app, 'GET', '/stopping', () => {
        throw new RequestResetError()
      })
      addJsonRoute(app, 'GET', '/large', () => ({ text: LARGE_TEXT }))
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
}

t.test('an agent discards a stored response that is not fetched', async (t) => {
  const finish = Promise.withResolvers<void>()
  const started = Promise.withResolvers<void>()
  const { tunnel, agent, call } = await connect(t, PROTOCOL_VERSION, (app) => {
    addJsonRoute(app, 'GET', '/large', async () => {
      started.resolve()
      await finish.promise
      return { text: LARGE_TEXT }
    })
    addJsonRoute(app, 'GET', '/small', () => 1)
  })
  const { storedResponses } = agent.app
  const kept = new Set<number>()
  let storedCount = 0
  const { set, delete: discard } = storedResponses
  storedResponses.set = (id, body) => {
    storedCount += 1
    kept.add(id)
    set(id, body)
  }
  storedResponses.delete = (id) => {
    kept.delete(id)
    discard(id)
  }
  const controller = new AbortController()
  const cancelled = tunnel.call({ ...GET, path: '/large', signal: controller.signal })
  await started.promise
  controller.abort(new Error('the client disconnected'))
  await t.rejects(cancelled, { message: 'the client disconnected' })
  finish.resolve()
  await waitUntil('the cancelled response is discarded', () => storedCount === 1 && kept.size === 0)
  await t.rejects(call({ ...GET, path: '/large' }), { code: 'exec_failed' })
  await waitUntil('the response above the limit is discarded', () => storedCount === 2 && kept.size === 0)
  t.same(await call({ ...GET, path: '/small' }), { status: 200, body: '1' })
})

t.test('a call over HTTP/2 may take longer than a command', async (t) => {
  const requests: TunnelRequest[] = []
  const request = async (request: TunnelRequest) => {
    requests.push(request)
    return { status: 200, headers: {}, body: Readable.from([]) }
  }
  // The installation of a build.
  await callByRequest(request, { method: 'POST', path: '/upgrade', timeoutMs: 30 * 60_000 })
  t.match(requests, [{ path: '/upgrade', headTimeoutMs: 30 * 60_000 }])
})
