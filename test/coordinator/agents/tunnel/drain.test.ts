// Draining: the orderly shutdown of a coordinator's tunnels.
import t from 'tap'
import { startTestAgent, startTunnelServer } from '../../../support/tunnel.ts'
import { DEADLINE_MS, waitUntil } from '../../../support/wait-until.ts'

t.test('completes requests in flight, rejects new ones, and delays the reconnect of the agent', async (t) => {
  const coordinator = await startTunnelServer({ reconnectSpreadMs: 1000 })
  t.after(() => coordinator.close())
  const box = coordinator.addBox()
  const received = Promise.withResolvers<void>()
  const mayRespond = Promise.withResolvers<void>()
  let attempts = 0
  const agent = await startTestAgent(
    box,
    coordinator.url,
    (router) => {
      router.add('GET', '/slow', async () => {
        received.resolve()
        await mayRespond.promise
        return { done: true }
      })
    },
    {
      readToken: async () => {
        attempts += 1
        return box.token
      },
    },
  )
  t.after(() => agent.close())
  const tunnel = await coordinator.tunnels.wait(box.boxId, DEADLINE_MS)
  const reasons: string[] = []
  coordinator.tunnels.on('disconnected', (_boxId, reason) => void reasons.push(reason))
  const running = tunnel.call({ method: 'GET', path: '/slow', timeoutMs: DEADLINE_MS })
  await received.promise
  const drained = coordinator.tunnels.drain()
  await t.rejects(tunnel.call({ method: 'GET', path: '/slow', timeoutMs: DEADLINE_MS }), {
    code: 'box_unreachable',
  })
  mayRespond.resolve()
  t.same(JSON.parse((await running).body.toString()), { done: true })
  await drained
  t.equal(coordinator.tunnels.current(box.boxId), undefined)
  t.notMatch(reasons, ['the coordinator is stopping'], 'the agent closed the connection itself')
  t.equal(attempts, 1, 'the agent waits for the requested delay; its own back-off is at most 50 ms')
})

t.test('closes a request in flight after the drain timeout', async (t) => {
  const coordinator = await startTunnelServer({ drainMs: 50 })
  t.after(() => coordinator.close())
  const box = coordinator.addBox()
  const agent = await startTestAgent(box, coordinator.url, (router) => {
    router.add('GET', '/never', () => new Promise(() => undefined))
  })
  t.after(() => agent.close())
  const tunnel = await coordinator.tunnels.wait(box.boxId, DEADLINE_MS)
  const interrupted = t.rejects(tunnel.call({ method: 'GET', path: '/never', timeoutMs: DEADLINE_MS }), {
    code: 'box_unreachable',
  })
  await coordinator.tunnels.drain()
  await interrupted
})

t.test('an agent reconnects to the next coordinator', async (t) => {
  const first = await startTunnelServer({ reconnectSpreadMs: 0 })
  const box = first.addBox()
  const agent = await startTestAgent(box, first.url)
  t.after(() => agent.close())
  await first.tunnels.wait(box.boxId, DEADLINE_MS)
  await first.tunnels.drain()
  await first.close()
  const second = await startTunnelServer({}, first.port)
  t.after(() => second.close())
  second.tokens.set(box.boxId, box.token)
  await waitUntil('the box is connected', () => second.tunnels.current(box.boxId))
  t.pass('connected')
})
