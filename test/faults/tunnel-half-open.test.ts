// Tunnels whose connection is reset or becomes half-open: both ends detect it, and the agent reconnects.
import t from 'tap'
import { startTestAgent, startTunnelServer } from '../support/tunnel.ts'
import { startTunnelProxy } from '../support/tunnel-proxy.ts'
import { DEADLINE_MS, waitUntil } from '../support/wait-until.ts'

const liveness = { tickMs: 20, pingEveryMs: 40, deadAfterMs: 200 }

t.test('both ends detect a half-open connection, and the agent reconnects', async (t) => {
  const coordinator = await startTunnelServer({ liveness, probeTimeoutMs: 100 })
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
    },
    { liveness },
  )
  t.after(() => agent.close())
  let tunnel = await coordinator.tunnels.wait(box.boxId, DEADLINE_MS)

  for (let round = 1; round <= 5; round++) {
    const interrupted = t.rejects(
      tunnel.call({ method: 'GET', path: '/wait', timeoutMs: DEADLINE_MS }),
      { code: 'box_unreachable' },
      `round ${round}: a request in flight fails`,
    )
    const { generation } = tunnel
    proxy.blackhole()
    await interrupted
    await waitUntil(
      'a new tunnel is connected',
      () => (coordinator.tunnels.current(box.boxId)?.generation ?? 0) > generation,
    )
    tunnel = await coordinator.tunnels.wait(box.boxId, DEADLINE_MS)
    const { body } = await tunnel.call({ method: 'GET', path: '/hello', timeoutMs: DEADLINE_MS })
    t.same(JSON.parse(body.toString()), { hello: 'box' })
  }
})

t.test('an idle connection to a live peer stays open', async (t) => {
  const coordinator = await startTunnelServer({ liveness })
  t.after(() => coordinator.close())
  const proxy = await startTunnelProxy(coordinator.port)
  t.after(() => proxy.close())
  const box = coordinator.addBox()
  const agent = await startTestAgent(box, proxy.url, undefined, { liveness })
  t.after(() => agent.close())
  const { generation } = await coordinator.tunnels.wait(box.boxId, DEADLINE_MS)
  const start = Date.now()
  await waitUntil(
    'three times the liveness timeout has passed',
    () => Date.now() - start > 3 * liveness.deadAfterMs,
  )
  t.equal(coordinator.tunnels.current(box.boxId)?.generation, generation)
})

t.test('a reset fails the requests in flight immediately, and the agent reconnects five times', async (t) => {
  const coordinator = await startTunnelServer()
  t.after(() => coordinator.close())
  const proxy = await startTunnelProxy(coordinator.port)
  t.after(() => proxy.close())
  const box = coordinator.addBox()
  const agent = await startTestAgent(box, proxy.url, (router) => {
    router.add('GET', '/wait', () => new Promise(() => undefined))
  })
  t.after(() => agent.close())
  for (let round = 1; round <= 5; round++) {
    await waitUntil('the box is connected', () => coordinator.tunnels.current(box.boxId))
    const tunnel = await coordinator.tunnels.wait(box.boxId, DEADLINE_MS)
    const interrupted = t.rejects(tunnel.call({ method: 'GET', path: '/wait', timeoutMs: DEADLINE_MS }), {
      code: 'box_unreachable',
    })
    setImmediate(() => proxy.reset())
    await interrupted
    await waitUntil('the old tunnel is removed', () => coordinator.tunnels.current(box.boxId) !== tunnel)
  }
})

t.test('an agent replaces another one that does not respond on its half-open connection', async (t) => {
  const coordinator = await startTunnelServer({ probeTimeoutMs: 50 })
  t.after(() => coordinator.close())
  const proxy = await startTunnelProxy(coordinator.port)
  t.after(() => proxy.close())
  const box = coordinator.addBox()
  const unresponsive = await startTestAgent(box, proxy.url)
  t.after(() => unresponsive.close())
  await coordinator.tunnels.wait(box.boxId, DEADLINE_MS)
  proxy.blackhole()
  const replacement = await startTestAgent(box, coordinator.url)
  t.after(() => replacement.close())
  await waitUntil(
    'the new agent is connected',
    () => coordinator.tunnels.current(box.boxId)?.instanceId === replacement.instanceId,
  )
  t.pass('replaced')
})
