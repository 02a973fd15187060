// A disconnected agent reconnects without its back-off when the coordinator asks for it, and after it was frozen.
import { setImmediate } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { startTestAgent, startTunnelServer } from '../../../support/tunnel.ts'
import { startTunnelProxy } from '../../../support/tunnel-proxy.ts'
import { DEADLINE_MS, waitUntil } from '../../../support/wait-until.ts'

const FLOOD_BYTES = 32 * 1024 * 1024
/** Longer than the test. */
const LONG_BACKOFF = { backoff: { baseMs: 3_600_000, maxMs: 3_600_000 }, random: () => 0.5 }

async function startBox(t: Test, clock: { now(): number } = { now: () => Date.now() }) {
  const coordinator = await startTunnelServer()
  t.after(() => coordinator.close())
  const proxy = await startTunnelProxy(coordinator.port)
  t.after(() => proxy.close())
  const box = coordinator.addBox()
  const agent = await startTestAgent(
    box,
    proxy.url,
    (router) => {
      router.add('GET', '/hello', async () => ({ hello: 'box' }))
      router.add('GET', '/wait', () => new Promise(() => undefined))
      router.add('GET', '/flood', () => Buffer.alloc(FLOOD_BYTES))
    },
    { ...LONG_BACKOFF, clock },
  )
  t.after(() => agent.close())
  const tunnel = await coordinator.tunnels.wait(box.boxId, DEADLINE_MS)
  const waitForNext = async () => {
    await waitUntil(
      'a new tunnel is connected',
      () => (coordinator.tunnels.current(box.boxId)?.generation ?? 0) > tunnel.generation,
    )
    const { body } = await (await coordinator.tunnels.wait(box.boxId, 0)).call({
      method: 'GET',
      path: '/hello',
      timeoutMs: DEADLINE_MS,
    })
    t.same(JSON.parse(body.toString()), { hello: 'box' })
  }
  return { coordinator, proxy, box, tunnel, waitForNext }
}

t.test('an agent that is disconnected to reconnect immediately does so', async (t) => {
  const { coordinator, box, tunnel, waitForNext } = await startBox(t)
  const interrupted = t.rejects(tunnel.call({ method: 'GET', path: '/wait', timeoutMs: DEADLINE_MS }), {
    code: 'box_unreachable',
  })
  const reasons: string[] = []
  coordinator.tunnels.on('disconnected', (_boxId, reason) => void reasons.push(reason))
  coordinator.tunnels.disconnect(box.boxId, 'the box is suspended', { reconnect: 'immediately' })
  t.equal(coordinator.tunnels.current(box.boxId), undefined)
  await interrupted
  await waitForNext()
  t.same(reasons, ['the box is suspended'])
})

t.test('an agent that nothing uses is moved away, and requests wait for its next tunnel', async (t) => {
  const { coordinator, box, tunnel, waitForNext } = await startBox(t)
  const { tunnels } = coordinator
  const aborted = new AbortController()
  const { signal } = aborted
  const running = tunnel.call({ method: 'GET', path: '/wait', timeoutMs: DEADLINE_MS, signal })
  t.equal(tunnels.moveAway(box.boxId, 0), false, 'a request is in flight')
  t.equal(tunnels.current(box.boxId), tunnel)
  aborted.abort(new Error('the client has disconnected'))
  await t.rejects(running, { message: 'the client has disconnected' })
  t.equal(tunnels.moveAway(box.boxId, 0), true)
  t.equal(tunnels.moveAway(box.boxId, 0), false, 'it is not connected')
  const waiting = tunnels.wait(box.boxId, DEADLINE_MS)
  await waitForNext()
  t.equal((await waiting).generation, tunnels.current(box.boxId)?.generation)
})

t.test('also while the coordinator has received more than it has read', async (t) => {
  const { coordinator, box, tunnel, waitForNext } = await startBox(t)
  const maxBytes = () => FLOOD_BYTES
  const flood = tunnel.call({ method: 'GET', path: '/flood', timeoutMs: DEADLINE_MS, maxBytes })
  const failed = t.rejects(flood, { code: 'box_unreachable' })
  await setImmediate()
  coordinator.tunnels.disconnect(box.boxId, 'the box is suspended', { reconnect: 'immediately' })
  await failed
  await waitForNext()
})

t.test('an agent whose connection was lost while it was frozen reconnects immediately', async (t) => {
  let frozenMs = 0
  const { proxy, waitForNext } = await startBox(t, { now: () => Date.now() + frozenMs })
  frozenMs = 3_600_000
  proxy.reset()
  await waitForNext()
})
