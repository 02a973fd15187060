import t from 'tap'
import { readAll, startTestAgent, startTestCoordinator, waitUntil } from '../support/tunnel.ts'
import { startTunnelProxy } from '../support/tunnel-proxy.ts'

const liveness = { tickMs: 20, pingEveryMs: 40, deadAfterMs: 200 }

t.test('a link whose bytes vanish is found out by both ends, and the box comes back', async (t) => {
  const coordinator = await startTestCoordinator({ liveness, probeTimeoutMs: 100 })
  t.after(() => coordinator.close())
  const proxy = await startTunnelProxy(coordinator.port)
  t.after(() => proxy.close())
  const box = coordinator.addBox()
  const agent = await startTestAgent(
    box,
    proxy.url,
    (app) => {
      app.get('/hello', async () => ({ hello: 'box' }))
      app.get('/wait', (_request, reply) => void reply.hijack())
    },
    { liveness },
  )
  t.after(() => agent.close())
  let tunnel = await coordinator.tunnels.wait(box.boxId, 5000)

  for (let round = 1; round <= 5; round++) {
    const lost = tunnel.request({ method: 'GET', path: '/wait' })
    const refused = t.rejects(
      lost,
      { code: 'box_unreachable' },
      `round ${round}: a request in flight is told`,
    )
    const { generation } = tunnel
    proxy.blackhole()
    await refused
    await waitUntil(
      'a new tunnel is there',
      () => (coordinator.tunnels.current(box.boxId)?.generation ?? 0) > generation,
    )
    tunnel = await coordinator.tunnels.wait(box.boxId, 5000)
    const { body } = await tunnel.request({ method: 'GET', path: '/hello' })
    t.same(JSON.parse((await readAll(body)).toString()), { hello: 'box' })
  }
})

t.test('an idle link with a living peer is kept', async (t) => {
  const coordinator = await startTestCoordinator({ liveness })
  t.after(() => coordinator.close())
  const proxy = await startTunnelProxy(coordinator.port)
  t.after(() => proxy.close())
  const box = coordinator.addBox()
  const agent = await startTestAgent(box, proxy.url, undefined, { liveness })
  t.after(() => agent.close())
  const { generation } = await coordinator.tunnels.wait(box.boxId, 5000)
  const start = Date.now()
  await waitUntil('three times the deadline has passed', () => Date.now() - start > 3 * liveness.deadAfterMs)
  t.equal(coordinator.tunnels.current(box.boxId)?.generation, generation)
})

t.test(
  'a link that is reset fails what is in flight at once, and the box comes back five times',
  async (t) => {
    const coordinator = await startTestCoordinator()
    t.after(() => coordinator.close())
    const proxy = await startTunnelProxy(coordinator.port)
    t.after(() => proxy.close())
    const box = coordinator.addBox()
    const agent = await startTestAgent(box, proxy.url, (app) => {
      app.get('/wait', (_request, reply) => void reply.hijack())
    })
    t.after(() => agent.close())
    for (let round = 1; round <= 5; round++) {
      await waitUntil('the box is connected', () => coordinator.tunnels.current(box.boxId))
      const tunnel = await coordinator.tunnels.wait(box.boxId, 5000)
      const lost = tunnel.request({ method: 'GET', path: '/wait' })
      const refused = t.rejects(lost, { code: 'box_unreachable' })
      setImmediate(() => proxy.reset())
      await refused
      await waitUntil('the old tunnel is gone', () => coordinator.tunnels.current(box.boxId) !== tunnel)
    }
  },
)

t.test(
  'a new machine takes the box over from an agent behind a dead link, which does not answer',
  async (t) => {
    const coordinator = await startTestCoordinator({ probeTimeoutMs: 50 })
    t.after(() => coordinator.close())
    const proxy = await startTunnelProxy(coordinator.port)
    t.after(() => proxy.close())
    const box = coordinator.addBox()
    const stuck = await startTestAgent(box, proxy.url)
    t.after(() => stuck.close())
    await coordinator.tunnels.wait(box.boxId, 5000)
    proxy.blackhole()
    const next = await startTestAgent(box, coordinator.url)
    t.after(() => next.close())
    await waitUntil(
      'the new one has the box',
      () => coordinator.tunnels.current(box.boxId)?.instanceId === next.instanceId,
    )
    t.pass('taken over')
  },
)
