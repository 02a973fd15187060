// Agents of another version are restarted once, when no request is in flight.
import { EventEmitter } from 'node:events'
import t, { type Test } from 'tap'
import { createAgentUpgrades } from '../../../coordinator/lifecycle/agent-upgrades.ts'
import type { Tunnel, TunnelEvents } from '../../../coordinator/tunnel/types.ts'
import { silentLog } from '../../support/tunnel.ts'
import { waitUntil } from '../../support/wait-until.ts'

function setUp(t: Test) {
  const events = new EventEmitter<TunnelEvents>()
  const connected = new Map<string, Tunnel>()
  const busy = new Set<string>()
  const withTerminals = new Set<string>()
  const restarts: string[] = []
  let polls = 0
  const upgrades = createAgentUpgrades({
    agentVersion: 'new',
    tunnels: {
      current: (boxId) => connected.get(boxId),
      on: (event, listener) => void events.on(event, listener as never),
      off: (event, listener) => void events.off(event, listener as never),
    },
    isIdle(boxId) {
      polls += 1
      return !busy.has(boxId)
    },
    async restartAgent(boxId) {
      restarts.push(boxId)
      return !withTerminals.has(boxId)
    },
    log: silentLog,
    pollMs: 1,
    retryMs: 10,
  })
  t.teardown(() => upgrades.close())
  return {
    upgrades,
    busy,
    withTerminals,
    restarts,
    connect(boxId: string, agentVersion: string) {
      const tunnel = { boxId, agentVersion } as Tunnel
      connected.set(boxId, tunnel)
      events.emit('connected', tunnel)
    },
    disconnect: (boxId: string) => connected.delete(boxId),
    async waitForPolls(count: number) {
      const target = polls + count
      await waitUntil(`${count} more polls`, () => polls >= target)
    },
  }
}

t.test('restarts an agent of another version as soon as no request is in flight', async (t) => {
  const { connect, busy, restarts, waitForPolls } = setUp(t)
  busy.add('a').add('b')
  connect('a', 'old')
  connect('b', 'old')
  connect('c', 'new')
  await waitForPolls(10)
  t.same(restarts, [])
  busy.delete('a')
  await waitUntil('the idle agent is restarted', () => restarts.length === 1)
  await waitForPolls(10)
  t.same(restarts, ['a'])
})

t.test('does not restart an agent that keeps its old version again', async (t) => {
  const { connect, restarts } = setUp(t)
  connect('a', 'old')
  await waitUntil('the agent is restarted', () => restarts.length === 1)
  connect('a', 'old')
  connect('b', 'old')
  await waitUntil('the next agent is restarted', () => restarts.length === 2)
  t.same(restarts, ['a', 'b'])
})

t.test('restarts an agent that refused once its terminal sessions have exited', async (t) => {
  const { connect, withTerminals, restarts } = setUp(t)
  withTerminals.add('a')
  connect('a', 'old')
  await waitUntil('the restart is requested again', () => restarts.length > 2)
  withTerminals.delete('a')
  const { length } = restarts
  await waitUntil('the agent is restarted', () => restarts.length > length)
  const after = restarts.length
  connect('b', 'old')
  await waitUntil('the next agent is restarted', () => restarts.includes('b'))
  t.equal(restarts.length, after + 1)
})

t.test('waits for the next connection of an agent that has disconnected', async (t) => {
  const { connect, disconnect, busy, restarts, waitForPolls, upgrades } = setUp(t)
  busy.add('a').add('b')
  connect('a', 'old')
  connect('b', 'old')
  disconnect('a')
  busy.delete('a')
  await waitForPolls(10)
  t.same(restarts, [])
  connect('a', 'old')
  await waitUntil('the agent is restarted', () => restarts.length === 1)
  upgrades.close()
  connect('c', 'old')
  t.same(restarts, ['a'])
})
