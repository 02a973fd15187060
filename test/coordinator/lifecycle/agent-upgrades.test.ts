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
    restartAgent: async (boxId) => void restarts.push(boxId),
    log: silentLog,
    pollMs: 1,
  })
  t.teardown(() => upgrades.close())
  return {
    upgrades,
    busy,
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
