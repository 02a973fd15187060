import { join } from 'node:path'
import t, { type Test } from 'tap'
import { reportRoutes } from '../../agent/reports/routes.ts'
import { openSpool, type Spool } from '../../agent/reports/spool.ts'
import { openState } from '../../agent/state.ts'
import type { Ingest } from '../../coordinator/tunnel/reports.ts'
import type { DurableReport } from '../../shared/api/reports.ts'
import { systemClock } from '../../shared/clock.ts'
import { createTempDir } from '../support/temp-dir.ts'
import { silent, startTestAgent, startTestCoordinator, waitUntil } from '../support/tunnel.ts'
import { startTunnelProxy } from '../support/tunnel-proxy.ts'

const vitals = {
  cpu_pct: 1,
  mem_pct: 2,
  disk_pct: 3,
  idle_for_sec: 4,
  listeners_count: 5,
  agent_version: '0.1.0',
}
const report = (at: number): DurableReport => ({
  type: 'agent.started',
  at,
  instanceId: 'i',
  bootId: 'b',
  agentVersion: 'v',
})

/** A store that applies (box, epoch, seq) once, as the coordinator's does. */
function createStore() {
  const rows = new Map<string, number>()
  let deliveries = 0
  let heartbeats = 0
  const failures: Error[] = []
  const ingest: Ingest = {
    async apply(boxId, epoch, reports) {
      const failure = failures.shift()
      if (failure) throw failure
      await new Promise((resolve) => setImmediate(resolve))
      for (const { seq, report } of reports) {
        deliveries += 1
        rows.set(`${boxId} ${epoch} ${seq}`, report.type === 'agent.started' ? report.at : 0)
      }
    },
    heartbeat: () => {
      heartbeats += 1
    },
  }
  return { ingest, rows, failures, deliveries: () => deliveries, heartbeats: () => heartbeats }
}

async function setUp(t: Test, store: ReturnType<typeof createStore>, heartbeatMs = 10_000) {
  const folder = createTempDir(t, 'reports')
  const state = await openState(folder, silent)
  const spool = await openSpool({ dir: join(folder, 'reports'), state, log: silent })
  t.after(() => spool.close())
  const coordinator = await startTestCoordinator({
    ingest: store.ingest,
    reportRetryMs: { first: 5, max: 50 },
  })
  t.after(() => coordinator.close())
  const proxy = await startTunnelProxy(coordinator.port)
  t.after(() => proxy.close())
  const box = coordinator.addBox()
  const agent = await startTestAgent(box, proxy.url, (app) =>
    reportRoutes(app, { spool, log: silent, clock: systemClock, vitals: async () => vitals, heartbeatMs }),
  )
  t.after(() => agent.close())
  return { spool, state, coordinator, proxy, box }
}

const empty = (spool: Spool) => async () => (await spool.read({ firstSeq: 0, offset: 0 })) === null

t.test('every report arrives, and each is stored once, though the link is cut five times', async (t) => {
  const store = createStore()
  const { spool, proxy, coordinator, box } = await setUp(t, store)
  let at = 0
  for (let cut = 1; cut <= 5; cut++) {
    await waitUntil('the box is connected', () => coordinator.tunnels.current(box.boxId))
    const last = await coordinator.tunnels.wait(box.boxId, 5000)
    const appends: Promise<void>[] = []
    for (let i = 0; i < 200; i++) appends.push(spool.append(report(++at)))
    await Promise.race(appends)
    setImmediate(() => proxy.reset())
    await Promise.all(appends)
    await waitUntil('the cut is noticed', () => coordinator.tunnels.current(box.boxId) !== last)
  }
  await waitUntil('all of it is acknowledged', empty(spool))
  t.equal(store.rows.size, 1000)
  t.same(
    [...store.rows.values()].sort((a, b) => a - b),
    Array.from({ length: 1000 }, (_, i) => i + 1),
  )
  t.ok(store.deliveries() >= 1000)
})

t.test('a report whose commit failed is sent again', async (t) => {
  const store = createStore()
  store.failures.push(new Error('database is locked'), new Error('database is locked'))
  const { spool } = await setUp(t, store)
  await spool.append(report(1))
  await waitUntil('it is acknowledged', empty(spool))
  t.same([...store.rows.values()], [1])
})

t.test('a heartbeat comes at once on connecting, then on time', async (t) => {
  const store = createStore()
  await setUp(t, store, 20)
  await waitUntil('three heartbeats came', () => store.heartbeats() >= 3)
})

t.test('a report made while connected is told at once', async (t) => {
  const store = createStore()
  const { spool } = await setUp(t, store, 1_000_000)
  await waitUntil('connected', () => store.heartbeats() > 0)
  for (let at = 1; at <= 3; at++) {
    await spool.append(report(at))
    await waitUntil('it is there', () => store.rows.size === at)
  }
})
