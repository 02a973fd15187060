// A tunnel is closed between two requests, so that its agent connects elsewhere: none fails, and those that arrive meanwhile wait.
import t, { type Test } from 'tap'
import { startTestAgent, startTunnelServer } from '../../../support/tunnel.ts'
import { DEADLINE_MS, waitUntil } from '../../../support/wait-until.ts'

const CALL = { method: 'GET', path: '/slow', timeoutMs: DEADLINE_MS } as const

async function start(t: Test) {
  const coordinator = await startTunnelServer({ reconnectSpreadMs: 0 })
  const box = coordinator.addBox()
  let respond: () => void = () => undefined
  const agent = await startTestAgent(box, coordinator.url, (router) => {
    router.add('GET', '/slow', async () => {
      await new Promise<void>((resolve) => {
        respond = resolve
      })
      return { done: true }
    })
    router.add('GET', '/fast', () => ({ done: true }))
  })
  t.teardown(async () => {
    await agent.close()
    await coordinator.close()
  })
  const { tunnels } = coordinator
  const tunnel = await tunnels.wait(box.boxId, DEADLINE_MS)
  return { coordinator, tunnels, tunnel, boxId: box.boxId, respond: () => respond() }
}

t.test('a request in flight completes, and the next one uses the next tunnel', async (t) => {
  const { tunnels, tunnel, boxId, respond } = await start(t)
  const running = tunnel.call(CALL)
  const moved = tunnels.moveAwayWhenUnused(boxId, DEADLINE_MS)
  const waiting = tunnels.wait(boxId, DEADLINE_MS)
  const isHeld = await Promise.race([waiting.then(() => false), new Promise((r) => setImmediate(r, true))])
  t.equal(isHeld, true, 'further requests wait')
  const answer = waitUntil('it has responded', async () => {
    respond()
    return Promise.race([running, new Promise<undefined>((resolve) => setImmediate(resolve, undefined))])
  })
  t.equal((await answer).status, 200)
  t.equal(await moved, true)
  const next = await waiting
  t.ok(next.generation > tunnel.generation, 'another tunnel')
  t.equal((await next.call({ ...CALL, path: '/fast' })).status, 200)
})

t.test('a tunnel that stays in use is not closed, and serves the requests that have waited', async (t) => {
  const { tunnels, tunnel, boxId, respond } = await start(t)
  const running = tunnel.call(CALL)
  const moved = tunnels.moveAwayWhenUnused(boxId, 100)
  const waiting = tunnels.wait(boxId, DEADLINE_MS)
  t.equal(await moved, false)
  t.equal(await waiting, tunnel, 'the same tunnel')
  t.equal((await tunnel.call({ ...CALL, path: '/fast' })).status, 200)
  respond()
  t.equal((await running).status, 200)
  t.equal(await tunnels.moveAwayWhenUnused(boxId, DEADLINE_MS), true)
})

t.test('a coordinator that refuses agents lets those that are connected stay', async (t) => {
  const { tunnels, tunnel, boxId } = await start(t)
  tunnels.refuse()
  t.equal((await tunnel.call({ ...CALL, path: '/fast' })).status, 200)
  t.equal(await tunnels.moveAwayWhenUnused(boxId, DEADLINE_MS), true)
  t.equal(await tunnels.moveAwayWhenUnused(boxId, DEADLINE_MS), true, 'it is not here')
  await t.rejects(tunnels.wait(boxId, 1_500), { code: 'box_unreachable' }, 'it cannot connect here')
})
