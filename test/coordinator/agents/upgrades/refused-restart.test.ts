// An agent that refuses a restart keeps its tunnel, and is asked at most once in 30 seconds.
import t, { type Test } from 'tap'
import { AgentUpgrades } from '../../../../coordinator/agents/upgrades/agent-upgrades.ts'
import { ApiError } from '../../../../shared/errors.ts'
import { silentLog, startTestAgent, startTunnelServer } from '../../../support/tunnel.ts'
import { DEADLINE_MS, waitUntil } from '../../../support/wait-until.ts'

/** A box whose agent refuses restarts until `inUse` is false. `gate`, if set, delays its responses. */
async function setUp(t: Test) {
  const coordinator = await startTunnelServer()
  t.after(() => coordinator.close())
  const { tunnels } = coordinator
  const box = coordinator.addBox()
  const state = { inUse: true, status: 429, restarts: 0, gate: Promise.resolve() }
  const agent = await startTestAgent(box, coordinator.url, (router) =>
    router.add('POST', '/restart', async (request) => {
      state.restarts += 1
      await state.gate
      if (state.inUse)
        throw new ApiError(state.status === 429 ? 'rate_limited' : 'bad_request', 'It refuses.')
      request.afterResponse(() => void agent.close())
    }),
  )
  t.after(() => agent.close())
  const tunnel = await tunnels.wait(box.boxId, DEADLINE_MS)
  const events: string[] = []
  tunnels.on('connected', () => void events.push('connected'))
  tunnels.on('disconnected', () => void events.push('disconnected'))
  return { tunnels, boxId: box.boxId, state, tunnel, events }
}

t.test('a refused restart does not take the tunnel away', async (t) => {
  const { tunnels, boxId, state, tunnel, events } = await setUp(t)
  for (const status of [429, 400]) {
    state.status = status
    const { promise, resolve } = Promise.withResolvers<void>()
    state.gate = promise
    const restart = tunnels.restartAgent(boxId)
    t.equal(tunnels.current(boxId), tunnel, 'the box stays connected while its agent decides')
    await t.rejects(tunnels.restartAgent(boxId), { code: 'box_unreachable' }, 'one request at a time')
    let acquired: unknown
    const waiting = tunnels.wait(boxId, DEADLINE_MS).then((next) => {
      acquired = next
    })
    await new Promise(setImmediate)
    t.equal(acquired, undefined, 'a request of a client waits for the decision')
    resolve()
    if (status === 429) t.equal(await restart, false)
    else await t.rejects(restart, /status 400/)
    await waiting
    t.equal(acquired, tunnel, 'then it uses the same tunnel')
  }
  t.same(events, [])

  state.inUse = false
  t.equal(await tunnels.restartAgent(boxId), true)
  t.same(events, ['disconnected'])
})

t.test('a refusal is followed by at most one request in 30 seconds', async (t) => {
  const { tunnels, boxId, state } = await setUp(t)
  let now = 0
  let polls = 0
  const lines: string[] = []
  const upgrades = new AgentUpgrades({
    tunnels: {
      local(id) {
        polls += 1
        return tunnels.current(id)
      },
      on: tunnels.on,
      off: tunnels.off,
    },
    findTarget: async () => ({ buildId: 'new', isOffered: true, install: null }),
    refreshTargets: undefined,
    loadBox: async () => ({
      workspaceId: 'w',
      failedBuild: null,
      rollout: { share: 100, paused: false },
    }),
    restartAgent: tunnels.restartAgent,
    isIdle: () => true,
    log: { info: (_fields: unknown, line: string) => void lines.push(line), warn: silentLog.warn } as never,
    clock: { now: () => now },
    pollMs: 1,
  })
  t.teardown(() => upgrades.close())
  const reconnect = async () => {
    const previous = tunnels.current(boxId)?.generation ?? 0
    tunnels.disconnect(boxId, 'test', { reconnect: 'immediately' })
    await waitUntil('the agent has reconnected', () => (tunnels.current(boxId)?.generation ?? 0) > previous)
  }
  const poll = async () => {
    const target = polls + 50
    await waitUntil('the upgrade is considered 50 times', () => polls >= target)
  }
  await reconnect()
  await waitUntil('the agent is asked', () => state.restarts > 0)
  for (const seconds of [0, 15, 29]) {
    now = seconds * 1000
    await poll()
    t.equal(state.restarts, 1, `after ${seconds} s`)
    await reconnect()
    await poll()
    t.equal(state.restarts, 1, `after ${seconds} s on another connection`)
  }
  now = 30_001
  await waitUntil('the agent is asked again', () => state.restarts === 2)
  await poll()
  t.equal(state.restarts, 2)
  t.equal(lines.length, 1, 'the refusal is logged once')
  state.inUse = false
  now = 60_002
  await waitUntil('the agent is restarted', () => lines.length === 2)
  t.match(lines, [/refused the restart/, /restarted an agent/])
})
