// Agents of another build install it where necessary, and are restarted once, when no request is in flight.
import { EventEmitter } from 'node:events'
import t, { type Test } from 'tap'
import type { Tunnel, TunnelEvents } from '../../../../coordinator/agents/tunnel/types.ts'
import { AgentUpgrades } from '../../../../coordinator/agents/upgrades/agent-upgrades.ts'
import { silentLog } from '../../../support/tunnel.ts'
import { waitUntil } from '../../../support/wait-until.ts'

function setUp(t: Test) {
  const events = new EventEmitter<TunnelEvents>()
  const connected = new Map<string, Tunnel>()
  const busy = new Set<string>()
  const withTerminals = new Set<string>()
  const restarts: string[] = []
  const installed: string[] = []
  const rollout = { share: 100, paused: false }
  const failed = new Map<string, string>()
  let installError: Error | undefined
  let polls = 0
  let generation = 0
  const upgrades = new AgentUpgrades({
    findTarget: async ({ platform }) => ({
      buildId: 'new',
      isOffered: true,
      install:
        platform === null
          ? null
          : async ({ boxId }) => {
              installed.push(boxId)
              if (installError !== undefined) throw installError
            },
    }),
    refreshTargets: undefined,
    loadBox: async (boxId) => ({
      workspaceId: 'w',
      failedBuild: failed.get(boxId) ?? null,
      rollout: { ...rollout },
    }),
    tunnels: {
      local: (boxId) => connected.get(boxId),
      on: (event, listener) => void events.on(event, listener as never),
      off: (event, listener) => void events.off(event, listener as never),
    },
    isIdle(boxId) {
      polls += 1
      return !busy.has(boxId)
    },
    async restartAgent(boxId, buildId) {
      restarts.push(buildId === undefined ? boxId : `${boxId}:${buildId}`)
      return !withTerminals.has(boxId)
    },
    log: silentLog,
    pollMs: 1,
    retryMs: 10,
    installRetryMs: 10,
  })
  t.teardown(() => upgrades.close())
  const getTunnel = (boxId: string): Tunnel => {
    const tunnel = connected.get(boxId)
    if (tunnel === undefined) throw new Error(`${boxId} is not connected`)
    return tunnel
  }
  return {
    ...{ upgrades, busy, withTerminals, restarts, installed, rollout, failed },
    connect(boxId: string, agentVersion: string, platform: string | null = null) {
      generation += 1
      const tunnel = { boxId, agentVersion, platform, generation, failedBuild: null } as unknown as Tunnel
      connected.set(boxId, tunnel)
      events.emit('connected', tunnel)
    },
    disconnect: (boxId: string) => connected.delete(boxId),
    getStatus: (boxId: string) => upgrades.getStatus(getTunnel(boxId)),
    setInstallError(error: Error | undefined) {
      installError = error
    },
    async waitForPolls(count: number) {
      const target = polls + count
      await waitUntil(`${count} more polls`, () => polls >= target)
    },
  }
}

t.test('restarts an agent of another build as soon as no request is in flight', async (t) => {
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

t.test('does not restart an agent that keeps its old build again', async (t) => {
  const { connect, restarts, getStatus } = setUp(t)
  connect('a', 'old')
  await waitUntil('the agent is restarted', () => restarts.length === 1)
  connect('a', 'old')
  connect('b', 'old')
  await waitUntil('the next agent is restarted', () => restarts.length === 2)
  t.same(restarts, ['a', 'b'])
  t.match(await getStatus('a'), { state: 'outdated', detail: /still runs another build/ })
})

t.test('restarts an agent that refused once its terminal sessions have exited', async (t) => {
  const { connect, withTerminals, restarts, getStatus } = setUp(t)
  withTerminals.add('a')
  connect('a', 'old')
  await waitUntil('the restart is requested again', () => restarts.length > 2)
  t.match(await getStatus('a'), { state: 'upgrading', detail: /terminal sessions/ })
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

t.test('a machine installs the build before it is restarted with it', async (t) => {
  const { connect, restarts, installed, setInstallError, getStatus } = setUp(t)
  setInstallError(new Error('no space'))
  connect('a', 'old', 'linux-x64')
  await waitUntil('the installation is repeated', () => installed.length > 2)
  t.match(await getStatus('a'), { state: 'upgrading', detail: 'no space', build: 'new' })
  t.same(restarts, [])
  setInstallError(undefined)
  await waitUntil('the agent is restarted', () => restarts.length === 1)
  t.same(restarts, ['a:new'])
  connect('a', 'new', 'linux-x64')
  t.match(await getStatus('a'), { state: 'current', detail: null })
})

t.test('a pause, the share and failures hold an upgrade back until the rollout changes', async (t) => {
  const { connect, restarts, rollout, failed, getStatus, upgrades } = setUp(t)
  rollout.paused = true
  connect('a', 'old')
  const waitForDetail = (boxId: string, detail: RegExp) =>
    waitUntil(`the detail is ${detail}`, async () => detail.test((await getStatus(boxId)).detail ?? ''))
  await waitForDetail('a', /paused/)
  Object.assign(rollout, { paused: false, share: 0 })
  upgrades.applyRollout('w')
  await waitForDetail('a', /share/)
  rollout.share = 100
  failed.set('a', 'new')
  upgrades.applyRollout('w')
  await waitForDetail('a', /did not connect/)
  t.equal((await getStatus('a')).state, 'failed')
  failed.delete('a')
  upgrades.applyRollout('another workspace')
  connect('b', 'old')
  await waitUntil('the other agent is restarted', () => restarts.length === 1)
  t.same(restarts, ['b'])
  upgrades.applyRollout('w')
  await waitUntil('the agent is restarted', () => restarts.includes('a'))
})
