// Agents during a rolling upgrade: each coordinator writes its builds into its row, and each agent restarts once.
import { EventEmitter } from 'node:events'
import t, { type Test } from 'tap'
import type { Tunnel, TunnelEvents } from '../../../../coordinator/agents/tunnel/types.ts'
import { AgentUpgrades } from '../../../../coordinator/agents/upgrades/agent-upgrades.ts'
import { createTargetFinder } from '../../../../coordinator/agents/upgrades/find-target.ts'
import { createFleetTargets, HOLD_MS } from '../../../../coordinator/agents/upgrades/fleet-targets.ts'
import type { Db } from '../../../../coordinator/db/open.ts'
import { createFleet } from '../../../../coordinator/replicas/fleet.ts'
import type { ReplicaEvents } from '../../../../coordinator/replicas/replica.ts'
import { renewReplica } from '../../../../coordinator/replicas/store.ts'
import { onEachDatabase } from '../../../support/db.ts'
import { TEST_HOST } from '../../../support/replica.ts'
import { silentLog } from '../../../support/tunnel.ts'
import { waitUntil } from '../../../support/wait-until.ts'

const HOUR_MS = 60 * 60_000

/** One coordinator of a version, whose builds have the version as their id. */
async function startCoordinator(t: Test, db: Db, { id, version, host = TEST_HOST }: Settings) {
  const events = new EventEmitter<TunnelEvents>()
  const replicaEvents = new EventEmitter<ReplicaEvents>()
  const connected = new Map<string, Tunnel>()
  const restarts: string[] = []
  const installed: string[] = []
  let isIdle = true
  let now = 0
  let generation = 0
  const fleet = createFleet(db, id)
  const renew = async (leaseMs = HOUR_MS) => {
    const row = { id, version, host, name: id, url: 'http://127.0.0.1:1', settings: '{}' }
    await renewReplica(db, row, leaseMs, fleet.getReport())
    await fleet.read()
    replicaEvents.emit('membersRead')
  }
  await renew()
  const targets = createFleetTargets({
    fleet,
    replica: { id, events: replicaEvents },
    findHost: async (boxId) => boxId.split(' ')[1] ?? null,
    onChange: () => void upgrades.applyTargets(connected.values()),
    clock: { now: () => now },
  })
  const upgrades: AgentUpgrades = new AgentUpgrades({
    tunnels: {
      local: (boxId) => connected.get(boxId),
      on: (event, listener) => void events.on(event, listener as never),
      off: (event, listener) => void events.off(event, listener as never),
    },
    findTarget: createTargetFinder({
      bundles: { get: async (platform) => ({ platform, buildId: version }) as never },
      managedVersion: version,
      fleet: targets,
    }),
    refreshTargets: targets.refresh,
    loadBox: async () => ({ workspaceId: 'w', failedBuild: null, rollout: { share: 100, paused: false } }),
    isIdle: () => isIdle,
    async restartAgent(boxId) {
      restarts.push(boxId)
      return true
    },
    log: silentLog,
    pollMs: 1,
  })
  t.teardown(() => upgrades.close())
  return {
    restarts,
    installed,
    offerManaged: () => targets.offerManaged(version),
    renew,
    setIdle(value: boolean) {
      isIdle = value
    },
    advance(ms: number) {
      now += ms
    },
    connect(boxId: string, agentVersion: string, platform: string | null = 'linux-x64') {
      generation += 1
      const call = async () => {
        installed.push(boxId)
        return { status: 200, body: Buffer.alloc(0) }
      }
      const tunnel = {
        boxId,
        agentVersion,
        platform,
        generation,
        failedBuild: null,
        call,
      } as unknown as Tunnel
      connected.set(boxId, tunnel)
      events.emit('connected', tunnel)
    },
    getStatus: (boxId: string) => upgrades.getStatus(connected.get(boxId) as Tunnel),
  }
}

type Settings = { id: string; version: string; host?: string }

await onEachDatabase(t, async (t, newDb) => {
  await t.test('an older coordinator leaves the agents of a newer one alone', async (t) => {
    const db = await newDb(t)
    const old = await startCoordinator(t, db, { id: 'old', version: '1.0.0' })
    old.connect('a', '1.0.0+1.0.0')
    old.connect('b', '0.9.0+0.9.0')
    await waitUntil('its own build is installed', () => old.restarts.length === 1)
    t.same(old.restarts, ['b'])
    const renewed = await startCoordinator(t, db, { id: 'new', version: '1.1.0' })
    renewed.connect('a', '1.0.0+1.0.0')
    await waitUntil('the newer coordinator restarts the agent', () => renewed.restarts.length === 1)
    t.same(renewed.installed, ['a'])
    // The older one has not read the row since, and gets the agent.
    old.connect('a', '1.1.0+1.1.0')
    old.connect('c', '1.0.0+1.0.0')
    await waitUntil('the target is the newer build', async () => (await old.getStatus('c')).build === '1.1.0')
    t.match(await old.getStatus('a'), { state: 'current', build: '1.1.0' })
    await old.renew()
    t.match(await old.getStatus('c'), { state: 'outdated', build: '1.1.0' })
    t.same(old.restarts, ['b'])
    renewed.connect('a', '1.1.0+1.1.0')
    renewed.connect('d', '1.0.0+1.0.0')
    await waitUntil('the newer coordinator restarts the next agent', () => renewed.restarts.length === 2)
    t.same(renewed.restarts, ['a', 'd'])
  })

  await t.test('a restart that waits is not sent when a newer coordinator has started', async (t) => {
    const db = await newDb(t)
    const old = await startCoordinator(t, db, { id: 'old', version: '1.0.0' })
    old.setIdle(false)
    old.connect('a', '0.9.0+0.9.0')
    await waitUntil('the build is installed', () => old.installed.length === 1)
    const renewed = await startCoordinator(t, db, { id: 'new', version: '1.1.0' })
    renewed.connect('b', '1.0.0+1.0.0')
    await waitUntil('the newer coordinator offers its build', () => renewed.restarts.length === 1)
    old.setIdle(true)
    const hasNewTarget = async () => /connects to a coordinator/.test((await old.getStatus('a')).detail ?? '')
    await waitUntil('the agent waits for another coordinator', hasNewTarget)
    t.same(old.restarts, [])
  })

  await t.test(
    'a newer coordinator that restarts keeps its agents; one that does not return, does not',
    async (t) => {
      const db = await newDb(t)
      const old = await startCoordinator(t, db, { id: 'old', version: '1.0.0' })
      const renewed = await startCoordinator(t, db, { id: 'new', version: '1.1.0' })
      renewed.connect('a', '1.1.0+1.1.0')
      await waitUntil('it offers its build', async () => (await renewed.getStatus('a')).build === '1.1.0')
      await old.renew()
      await renewed.renew(-1)
      old.connect('a', '1.1.0+1.1.0')
      await old.renew()
      t.match(await old.getStatus('a'), { state: 'current', build: '1.1.0' })
      old.advance(HOLD_MS)
      await old.renew()
      t.match(await old.getStatus('a'), { state: 'current', build: '1.1.0' })
      old.advance(1)
      await old.renew()
      await waitUntil('the agent returns to the older build', () => old.restarts.length === 1)
      t.same([old.restarts, old.installed], [['a'], ['a']])
    },
  )

  await t.test('the agents of a host restart when that host has the new version', async (t) => {
    const db = await newDb(t)
    const renewed = await startCoordinator(t, db, { id: 'new', version: '1.1.0', host: 'hst_a' })
    await renewed.offerManaged()
    const old = await startCoordinator(t, db, { id: 'old', version: '1.0.0', host: 'hst_b' })
    await old.offerManaged()
    renewed.connect('own hst_a', '1.0.0+1.0.0', null)
    renewed.connect('other hst_b', '1.0.0+1.0.0', null)
    await renewed.renew()
    await waitUntil('the agent of its own host restarts', () => renewed.restarts.length === 1)
    t.match(await renewed.getStatus('other hst_b'), { state: 'current', build: '1.0.0' })
    await old.renew(-1)
    const next = await startCoordinator(t, db, { id: 'next', version: '1.1.0', host: 'hst_b' })
    await renewed.renew()
    t.match(await renewed.getStatus('other hst_b'), { state: 'current', build: null }, 'it is not ready')
    await next.offerManaged()
    await renewed.renew()
    await waitUntil('the agent of the other host restarts', () => renewed.restarts.length === 2)
    t.same(renewed.restarts, ['own hst_a', 'other hst_b'])
  })
})
