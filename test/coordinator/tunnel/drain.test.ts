import t from 'tap'
import { readAll, startTestAgent, startTestCoordinator, waitUntil } from '../../support/tunnel.ts'

t.test('draining lets a running request end, takes no new one and sends the agent away', async (t) => {
  const coordinator = await startTestCoordinator({ reconnectSpreadMs: 1000 })
  t.after(() => coordinator.close())
  const box = coordinator.addBox()
  const answer = Promise.withResolvers<void>()
  const asked = Promise.withResolvers<void>()
  let attempts = 0
  const agent = await startTestAgent(
    box,
    coordinator.url,
    (app) => {
      app.get('/slow', async () => {
        asked.resolve()
        await answer.promise
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
  const tunnel = await coordinator.tunnels.wait(box.boxId, 5000)
  const reasons: string[] = []
  coordinator.tunnels.on('disconnected', (_boxId, reason) => void reasons.push(reason))
  const running = tunnel.request({ method: 'GET', path: '/slow' })
  await asked.promise
  const drained = coordinator.tunnels.drain()
  await t.rejects(tunnel.request({ method: 'GET', path: '/slow' }), { code: 'box_unreachable' })
  answer.resolve()
  t.same(JSON.parse((await readAll((await running).body)).toString()), { done: true })
  await drained
  t.equal(coordinator.tunnels.current(box.boxId), undefined)
  t.notMatch(reasons, ['the coordinator is stopping'], 'it left by itself and was not cut off')
  t.equal(attempts, 1, 'the agent waits as long as it was told, and its own back-off would be 50 ms at most')
})

t.test('draining does not wait for ever', async (t) => {
  const coordinator = await startTestCoordinator({ drainMs: 50 })
  t.after(() => coordinator.close())
  const box = coordinator.addBox()
  const agent = await startTestAgent(box, coordinator.url, (app) => {
    app.get('/never', (_request, reply) => void reply.hijack())
  })
  t.after(() => agent.close())
  const tunnel = await coordinator.tunnels.wait(box.boxId, 5000)
  const lost = t.rejects(tunnel.request({ method: 'GET', path: '/never' }), { code: 'box_unreachable' })
  await coordinator.tunnels.drain()
  await lost
})

t.test('a coordinator that comes back has its boxes back', async (t) => {
  const first = await startTestCoordinator({ reconnectSpreadMs: 0 })
  const box = first.addBox()
  const agent = await startTestAgent(box, first.url)
  t.after(() => agent.close())
  await first.tunnels.wait(box.boxId, 5000)
  await first.tunnels.drain()
  await first.close()
  const second = await startTestCoordinator({}, first.port)
  t.after(() => second.close())
  second.tokens.set(box.boxId, box.token)
  await waitUntil('the box is connected', () => second.tunnels.current(box.boxId))
  t.pass('connected')
})
