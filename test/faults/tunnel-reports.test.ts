// Reports from an agent's spool to the coordinator's store: delivered at least once, despite resets and failed commits.
import { randomUUID } from 'node:crypto'
import { EventEmitter } from 'node:events'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { reportRoutes } from '../../agent/reports/routes.ts'
import { openSpool, type Spool } from '../../agent/reports/spool.ts'
import { openState } from '../../agent/state.ts'
import type { Ingest } from '../../coordinator/agents/tunnel/reports.ts'
import type { ListeningPort, ListeningTuple } from '../../shared/api/process-snapshots.ts'
import type { DurableReport } from '../../shared/api/reports.ts'
import { systemClock } from '../../shared/clock.ts'
import { MAX_LISTENING_PORTS } from '../../shared/report-limits.ts'
import { createTempDir } from '../support/temp-dir.ts'
import { silentLog, startTestAgent, startTunnelServer } from '../support/tunnel.ts'
import { startTunnelProxy } from '../support/tunnel-proxy.ts'
import { DEADLINE_MS, waitUntil } from '../support/wait-until.ts'

const vitals = {
  cpu_pct: 1,
  mem_pct: 2,
  disk_pct: 3,
  idle_for_sec: 4,
  listeners_count: 5,
  agent_version: '0.1.0',
}
const createReport = (at: number): DurableReport => ({
  type: 'agent.started',
  at,
  instanceId: 'i',
  bootId: 'b',
  agentVersion: 'v',
})

/** Like the coordinator's store, applies each (box, epoch, seq) once. Throws the errors in `failures` first. */
function createStore() {
  const rows = new Map<string, number>()
  let deliveries = 0
  let heartbeats = 0
  const ports: ListeningPort[][] = []
  const failures: Error[] = []
  const ingest: Ingest = {
    listeners: (_boxId, list) => void ports.push(list),
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
  return { ingest, rows, failures, ports, deliveries: () => deliveries, heartbeats: () => heartbeats }
}

async function setUp(
  t: Test,
  store: ReturnType<typeof createStore>,
  { heartbeatMs = 10_000, retryMs = 5, listeners = createFakeListeners() } = {},
) {
  const dir = createTempDir(t, 'reports')
  const state = await openState(dir, silentLog)
  const spool = await openSpool({ dir: join(dir, 'reports'), stateFile: state, log: silentLog })
  t.after(() => spool.close())
  const coordinator = await startTunnelServer({
    ingest: store.ingest,
    reportRetryMs: { first: retryMs, max: 10 * retryMs },
  })
  t.after(() => coordinator.close())
  const proxy = await startTunnelProxy(coordinator.port)
  t.after(() => proxy.close())
  const box = coordinator.addBox()
  const agent = await startTestAgent(box, proxy.url, (router) =>
    reportRoutes(router, {
      spool,
      clock: systemClock,
      readVitals: () => vitals,
      listeners,
      flushRecorders: async () => undefined,
      heartbeatIntervalMs: heartbeatMs,
    }),
  )
  t.after(() => agent.close())
  return { spool, coordinator, proxy, box }
}

function createFakeListeners() {
  let ports: ListeningTuple[] | null = null
  const events = new EventEmitter<{ change: [] }>()
  return {
    current: () => ports,
    events,
    set(next: ListeningTuple[]) {
      ports = next
      events.emit('change')
    },
  }
}

/** The agent deletes acknowledged reports from its spool. */
const isEmpty = (spool: Spool) => async () => (await spool.read({ firstSeq: 0, offset: 0 })) === null

t.test('every report is stored exactly once, despite five connection resets', async (t) => {
  const store = createStore()
  const { spool, proxy, coordinator, box } = await setUp(t, store)
  let at = 0
  for (let round = 1; round <= 5; round++) {
    await waitUntil('the box is connected', () => coordinator.tunnels.current(box.boxId))
    const tunnel = await coordinator.tunnels.wait(box.boxId, DEADLINE_MS)
    const appends: Promise<void>[] = []
    for (let i = 0; i < 200; i++) appends.push(spool.append(createReport(++at)))
    await Promise.race(appends)
    setImmediate(() => proxy.reset())
    await Promise.all(appends)
    await waitUntil('the reset is detected', () => coordinator.tunnels.current(box.boxId) !== tunnel)
  }
  await waitUntil('all reports are acknowledged', isEmpty(spool))
  t.equal(store.rows.size, 1000)
  t.same(
    [...store.rows.values()].sort((a, b) => a - b),
    Array.from({ length: 1000 }, (_, i) => i + 1),
  )
  t.ok(store.deliveries() >= 1000)
})

t.test('a report is sent again when its commit fails', async (t) => {
  const store = createStore()
  store.failures.push(new Error('database is locked'), new Error('database is locked'))
  const { spool } = await setUp(t, store)
  await spool.append(createReport(1))
  await waitUntil('the report is acknowledged', isEmpty(spool))
  t.same([...store.rows.values()], [1])
})

t.test(
  'flushReports waits for the agent, and reads the reports without the delay before a retry',
  async (t) => {
    const store = createStore()
    store.failures.push(new Error('database is locked'))
    const { spool, coordinator, box } = await setUp(t, store, { retryMs: 1_000_000 })
    await spool.append(createReport(1))
    await waitUntil('the commit has failed', () => store.failures.length === 0)
    await coordinator.tunnels.flushReports(box.boxId, 10_000)
    t.same([...store.rows.values()], [1])
    t.equal(await isEmpty(spool)(), true)
  },
)

t.test('flushReports rejects when the reports cannot be stored, or in time', async (t) => {
  const store = createStore()
  for (let i = 0; i < 1000; i++) store.failures.push(new Error('database is locked'))
  const { spool, coordinator, box } = await setUp(t, store)
  await spool.append(createReport(1))
  const { flushReports } = coordinator.tunnels
  await t.rejects(flushReports(box.boxId, 1_000_000), { message: 'database is locked' })
  t.equal(store.rows.size, 0)
  await t.rejects(flushReports(randomUUID(), 10), { code: 'box_unreachable' })

  const hanging = createStore()
  hanging.ingest.apply = () => new Promise(() => undefined)
  const second = await setUp(t, hanging)
  await second.spool.append(createReport(1))
  await t.rejects(second.coordinator.tunnels.flushReports(second.box.boxId, 100), { code: 'box_unreachable' })
})

t.test('the agent sends a heartbeat when it connects, then periodically', async (t) => {
  const store = createStore()
  await setUp(t, store, { heartbeatMs: 20 })
  await waitUntil('three heartbeats have arrived', () => store.heartbeats() >= 3)
})

t.test('a report is sent immediately while the agent is connected', async (t) => {
  const store = createStore()
  const { spool } = await setUp(t, store, { heartbeatMs: 1_000_000 })
  await waitUntil('the agent is connected', () => store.heartbeats() > 0)
  for (let at = 1; at <= 3; at++) {
    await spool.append(createReport(at))
    await waitUntil('the report is stored', () => store.rows.size === at)
  }
})

t.test('listening ports are sent when they change, and again after a reconnect', async (t) => {
  const store = createStore()
  const listeners = createFakeListeners()
  const { proxy, coordinator, box } = await setUp(t, store, { listeners, heartbeatMs: 1_000_000 })
  await waitUntil('the stream is open', () => store.heartbeats() === 1)
  t.strictSame(store.ports, [], 'nothing is sent before the ports are known')
  listeners.set([])
  await waitUntil('the first list arrives', () => store.ports.length === 1)
  listeners.set([
    [80, 7, 'node'],
    [81, null, null],
  ])
  await waitUntil('the change arrives', () => store.ports.length === 2)
  const expected = [
    { port: 80, pid: 7, process: 'node' },
    { port: 81, pid: null, process: null },
  ]
  t.strictSame(store.ports, [[], expected])
  const tunnel = coordinator.tunnels.current(box.boxId)
  proxy.reset()
  await waitUntil('the reset is detected', () => coordinator.tunnels.current(box.boxId) !== tunnel)
  await waitUntil('the list arrives again', () => store.ports.length === 3)
  t.strictSame(store.ports[2], expected)
})

t.test('the longest list of ports is accepted', async (t) => {
  const store = createStore()
  const listeners = createFakeListeners()
  const name = '"\\'.repeat(8)
  listeners.set(Array.from({ length: MAX_LISTENING_PORTS }, (_, i) => [64_000 + i, 4_194_303, name]))
  await setUp(t, store, { listeners })
  await waitUntil('the list arrives', () => store.ports.length === 1)
  t.equal(store.ports[0]?.length, MAX_LISTENING_PORTS)
  t.strictSame(store.ports[0]?.at(-1), { port: 64_999, pid: 4_194_303, process: name })
})
