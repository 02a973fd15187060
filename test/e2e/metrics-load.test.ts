// A load of known size on a box shows in its metrics, listening ports and process snapshots over HTTP, at every isolation level and
// each kind of network, with the errors that docs/measurements.md states. Nothing of the host or of another box shows.

import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { createServer } from 'node:net'
import { networkInterfaces } from 'node:os'
import t, { type Test } from 'tap'
import type { Isolation, LocalIsolationLevel } from '../../shared/api/boxes.ts'
import type { Metrics, MetricsValues } from '../../shared/api/metrics.ts'
import { SAMPLE_SECONDS } from '../../shared/report-limits.ts'
import { measureBoxCpus } from '../support/box-cpu.ts'
import { type BoxLoad, type Exec, type LoadOptions, startBoxLoad } from '../support/box-load.ts'
import { startTestCoordinator, type TestCoordinator } from '../support/coordinator.ts'
import { findLevelProblem } from '../support/isolation-levels.ts'
import { limitsEnv } from '../support/limits-env.ts'
import {
  createMeasurements,
  floorTo,
  type Measurements,
  nextMultiple,
  SAMPLE_MS,
  SNAPSHOT_MS,
  sleepUntil,
} from '../support/measurements.ts'
import { waitUntil } from '../support/wait-until.ts'
import { HIGH_EDGE_LIMITS } from './coordinator-with-box.ts'
import { checkMissedMetrics } from './metrics-coordinator-killed.ts'

const MiB = 1024 * 1024
type Load = Omit<LoadOptions, 'download'>
const FIG: Load = {
  ...{ name: 'fig', cpus: 0.05, memoryBytes: 128 * MiB, writtenBytes: 24 * MiB, loopbackBytes: 8 * MiB },
}
const PLUM: Load = {
  ...{ name: 'plum', cpus: 0, memoryBytes: 32 * MiB, writtenBytes: 8 * MiB, loopbackBytes: 0 },
}
const BRIEF: Load = { name: 'brief', cpus: 0, memoryBytes: 0, writtenBytes: 0, loopbackBytes: 0 }
const DOWNLOAD_BYTES = 4 * MiB
/** Of the tier `lite`. */
const TIER = { cpu_count: 2, mem_total_bytes: 4 * 1024 * MiB, disk: 40e9 }

/** Each level and each network. The load of further combinations would slow down the other tests. */
const CONFIGURATIONS: { level: LocalIsolationLevel; network: Isolation['network'] }[] = [
  { level: 'bubblewrap', network: 'own' },
  { level: 'namespaces', network: 'host' },
  { level: 'process', network: 'host' },
]

/** Before the first test: tap ends a file that waits between its tests. */
const problems = await Promise.all(
  CONFIGURATIONS.map(({ level, network }) => findLevelProblem(level, network)),
)

/** Of the host: a listening port, and memory, which no box may show. */
const hostServer = createServer((socket) => {
  socket.on('error', () => undefined).end(Buffer.alloc(DOWNLOAD_BYTES))
})
const hostMemory = Buffer.alloc(128 * MiB, 1)
const hostAddress = Object.values(networkInterfaces())
  .flat()
  .find((address) => address?.family === 'IPv4' && !address.internal)?.address

type TestBox = Measurements & { id: string; exec: Exec; load: BoxLoad; startedAt: number }

async function startLoad(
  coordinator: TestCoordinator,
  { id, hostname }: { id: string; hostname: string },
  load: Load,
  hasOwnNetwork: boolean,
): Promise<TestBox> {
  const { api, edge, waitForState } = coordinator
  await waitForState(id, 'running')
  // The first sample describes only the time since the start of the agent.
  await sleepUntil(nextMultiple(SAMPLE_MS) + 1000)
  const startedAt = Date.now()
  const exec: Exec = async (command, options = {}) =>
    (await edge(hostname, 'POST', '/exec', { command, ...options })).json
  const server = hostServer.address() as { port: number }
  const download =
    hasOwnNetwork && hostAddress !== undefined ? { host: hostAddress, port: server.port } : null
  const options = { ...load, loopbackBytes: hasOwnNetwork ? load.loopbackBytes : 0, download }
  const measurements = createMeasurements(id, async (path) => (await api('GET', path)).json)
  return { ...measurements, id, exec, load: await startBoxLoad(exec, options), startedAt }
}

const isNear = (value: number | null | undefined, expected: number, error: number): boolean =>
  value != null && Math.abs(value - expected) <= error
/** Of a rate per second over the buckets. */
const sumOf = ({ avg }: MetricsValues): number =>
  avg.reduce<number>((sum, value) => sum + (value ?? 0) * SAMPLE_SECONDS, 0)
const formatMiB = (bytes: number | null | undefined) => `${((bytes ?? Number.NaN) / MiB).toFixed(1)} MiB`
const first = ({ avg }: MetricsValues): number => avg[0] ?? Number.NaN

/** @param used by all processes of the box in the bucket @param usedByLoad its part */
function checkCpu(t: Test, { series }: Metrics, used: number, usedByLoad: number) {
  const measured = (first(series.cpu_pct) / 100) * first(series.cpu_count)
  t.ok(isNear(measured, used, 0.025), `used ${used.toFixed(3)} CPUs: ${measured.toFixed(3)}`)
  t.ok(measured > usedByLoad - 0.01, `the load used ${usedByLoad.toFixed(3)} CPUs of it`)
}

/** The agent, the runner and the shell of the load use memory too. */
async function checkMemory(t: Test, { series }: Metrics, used: number) {
  const measured = first(series.mem_used_bytes)
  const isRight = measured > used + 5 * MiB && measured < used + 60 * MiB
  t.ok(isRight, `used ${formatMiB(used)}: ${formatMiB(measured)}`)
}

const isNull = ({ avg, max }: MetricsValues): boolean => [...avg, ...max].every((value) => value === null)

function checkHostIsUnknown(t: Test, { series, fs }: Metrics) {
  for (const name of ['load1', 'load5', 'load15'] as const) t.ok(isNull(series[name]), `${name} is null`)
  for (const { read_bytes_per_sec, write_bytes_per_sec } of fs)
    t.ok(isNull(read_bytes_per_sec) && isNull(write_bytes_per_sec), 'the throughput of the device is null')
}

function checkTraffic(t: Test, hasOwnNetwork: boolean, { ifaces }: Metrics) {
  t.same(
    ifaces.map(({ name }) => name),
    hasOwnNetwork ? ['lo', 'tap0'] : [],
    'only interfaces of the box',
  )
  const check = (name: string, series: 'rx_bytes_per_sec' | 'tx_bytes_per_sec', expected: number) => {
    const found = ifaces.find((iface) => iface.name === name)
    const bytes = found === undefined ? Number.NaN : sumOf(found[series])
    // Packet headers are counted too.
    t.ok(
      isNear(bytes, expected * 1.02, expected * 0.07),
      `${name}, ${formatMiB(expected)}: ${formatMiB(bytes)}`,
    )
  }
  if (!hasOwnNetwork) return
  check('lo', 'rx_bytes_per_sec', FIG.loopbackBytes)
  check('lo', 'tx_bytes_per_sec', FIG.loopbackBytes)
  if (hostAddress !== undefined) check('tap0', 'rx_bytes_per_sec', DOWNLOAD_BYTES)
}

/** Stops the box for a whole bucket. */
async function checkGap(t: Test, { api, waitForState }: TestCoordinator, box: TestBox): Promise<void> {
  const before = nextMultiple(SAMPLE_MS, box.load.state.readyAt)
  const sample = await box.waitForSample(before)
  await checkMemory(t, sample, await box.load.readAnonymousBytes())
  t.equal((await api('POST', `/boxes/${box.id}/suspend?stop=1`)).status, 202)
  await waitForState(box.id, 'suspended')
  const gap = floorTo(SAMPLE_MS, Date.now())
  t.equal(await box.readListening(), null, 'the ports of a suspended box are unknown')
  await sleepUntil(gap + SAMPLE_MS)
  t.equal((await api('POST', `/boxes/${box.id}/wake`)).status, 202)
  await waitForState(box.id, 'running')
  const end = nextMultiple(SAMPLE_MS)
  await box.waitForSample(end)

  const { buckets, series, fs } = await box.readMetrics(before - SAMPLE_MS, end)
  const count = (end - before) / SAMPLE_MS + 1
  const expected = Array.from({ length: count }, (_, i) => before / 1000 + (i - 1) * SAMPLE_SECONDS)
  t.same(buckets, expected, 'each bucket once')
  const index = buckets.indexOf(gap / 1000)
  for (const [name, { avg, max }] of Object.entries(series))
    t.same([avg[index], max[index]], [null, null], `${name} is null in the gap`)
  for (const { used_bytes } of fs) t.equal(used_bytes.avg[index], null, 'used_bytes is null in the gap')
  const memory = series.mem_used_bytes.avg
  t.ok((memory.at(-1) ?? Infinity) < (memory[0] ?? 0) - PLUM.memoryBytes, 'the load has exited')
}

/** A process that lives between two snapshots: its port is listed at once, and no longer when it has exited. */
async function checkPorts(t: Test, { edge }: TestCoordinator, box: TestBox) {
  const toPort = ({ state: { port, programName, pid } }: BoxLoad) => ({ port, process: programName, pid })
  const byPort = (a: { port: number }, b: { port: number }) => a.port - b.port
  const waitForPorts = async (loads: BoxLoad[]) => {
    const expected = loads.map(toPort).sort(byPort)
    await waitUntil(`the ports are those of ${loads.length} loads`, async () => {
      const ports = await box.readListening()
      return ports?.length === expected.length && ports.every(({ port }, i) => port === expected[i]?.port)
    })
    t.same(await box.readListening(), expected, `only the ports of ${loads.length} loads are listed`)
  }
  await waitForPorts([box.load])
  const brief = await startBoxLoad(box.exec, { ...BRIEF, download: null })
  await waitForPorts([box.load, brief])
  t.equal((await edge('fig', 'DELETE', `/exec/${brief.processId}`)).status, 200)
  await waitForPorts([box.load])
}

async function checkSnapshots(t: Test, coordinator: TestCoordinator, box: TestBox, firstMinute: number) {
  const { exec, load } = box
  const { pid, programName, port, startedAt } = load.state
  const user = (await exec('id -un 2>/dev/null')).stdout.trim()
  let previousAt = firstMinute
  for (const minute of [firstMinute, firstMinute + SNAPSHOT_MS]) {
    const { at, procs, ports, total } = await box.waitForSnapshot(minute)
    t.same(ports, [{ port, process: programName, pid }], 'the only port is that of the load')
    t.equal(total, procs.length)
    const found = procs.find((process) => process.pid === pid)
    t.match(found, { user, name: programName, command: /fig\.ts \{"name":"fig"/ })
    const reportedStart = Date.parse(found?.startedAt ?? '')
    t.ok(
      reportedStart > load.requestedAt - 1000 && reportedStart < startedAt + 1000,
      `started at ${found?.startedAt}`,
    )
    const memory = found?.memBytes ?? 0
    t.ok(memory >= FIG.memoryBytes && memory < FIG.memoryBytes + 128 * MiB, `memory: ${formatMiB(memory)}`)
    if (minute === firstMinute) await checkPorts(t, coordinator, box)
    else {
      // A busy agent takes its snapshots later than at the full minute.
      const used = 100 * (await load.readCpus(previousAt, Date.parse(at)))
      t.ok(isNear(found?.cpuPct, used, 1.5), `used ${used.toFixed(1)} % of a CPU: ${found?.cpuPct} %`)
    }
    const isForeign = ({ command }: { command: string | null }) =>
      /plum|brief|metrics-load/.test(command ?? '')
    t.same(
      procs.filter(isForeign),
      [],
      'no process of the host, of another box or from between the snapshots',
    )
    t.ok(procs.length < 10, `${procs.length} processes`)
    previousAt = Date.parse(at)
  }
}

/** The disk space is measured once a minute, and shown in the sample after that. */
async function checkDisk(
  t: Test,
  { startedAt, readMetrics, waitForSample }: TestBox,
  end: number,
): Promise<number> {
  const used = async (to: number) => {
    const { fs } = await readMetrics(startedAt - SAMPLE_MS, to)
    const values = fs[0]?.used_bytes.avg.filter((value) => value !== null) ?? []
    return { bytes: (values.at(-1) ?? 0) - Math.min(...values), fs }
  }
  let to = end
  for (; (await used(to)).bytes < FIG.writtenBytes - MiB && to < end + 2 * SAMPLE_MS; to += SAMPLE_MS)
    await waitForSample(to + SAMPLE_MS)
  const { bytes, fs } = await used(to)
  t.ok(
    isNear(bytes, FIG.writtenBytes, 2 * MiB),
    `disk space of ${formatMiB(FIG.writtenBytes)}: ${formatMiB(bytes)}`,
  )
  t.equal(fs.length, 1, 'one file system')
  t.equal(fs[0]?.total_bytes.avg.at(-1), TIER.disk)
  return to
}

let lastStart: Promise<unknown> = Promise.resolve()

async function checkConfiguration(t: Test, isolation: Pick<Isolation, 'level' | 'network'>) {
  const env = {
    ...limitsEnv(HIGH_EDGE_LIMITS),
    BOXWOOD_LOCAL_ISOLATION: isolation.level,
    BOXWOOD_LOCAL_NETWORK: isolation.network,
  }
  // One after the other: their probes of the isolation levels would wait for each other.
  const start = () => startTestCoordinator(t, { machines: 'local', env })
  const starting = lastStart.then(start)
  lastStart = starting.catch(() => undefined)
  const coordinator = await starting
  const hasOwnNetwork = isolation.network === 'own'
  const { boxes } = (await coordinator.api('GET', '/boxes')).json
  const created = (await coordinator.api('POST', '/boxes', { name: 'fig' })).json
  const [fig, plum] = await Promise.all([
    startLoad(coordinator, created.box, FIG, hasOwnNetwork),
    startLoad(coordinator, boxes[0], PLUM, hasOwnNetwork),
  ])
  const { box } = (await coordinator.api('GET', `/boxes/${fig.id}`)).json
  t.match(box.isolation, isolation)
  const firstMinute = nextMultiple(SNAPSHOT_MS, fig.load.state.readyAt)
  const minute = firstMinute + SNAPSHOT_MS
  const [usedCpus] = await Promise.all([
    measureBoxCpus(fig.id, minute - SAMPLE_MS, minute),
    checkSnapshots(t, coordinator, fig, firstMinute),
    checkGap(t, coordinator, plum),
  ])

  const sample = await fig.waitForSample(minute)
  checkCpu(t, sample, usedCpus, await fig.load.readCpus(minute - SAMPLE_MS, minute))
  t.match(sample.series, { cpu_count: { avg: [2] }, mem_total_bytes: { avg: [TIER.mem_total_bytes] } })
  t.same([sample.series.listener_count.avg, sample.series.listener_count.max], [[1], [1]])
  await checkMemory(t, sample, await fig.load.readAnonymousBytes())
  const { vitals } = (await coordinator.api('GET', `/boxes/${fig.id}`)).json
  t.equal(vitals.listeners_count, 1)
  t.ok(vitals.idle_for_sec < 60)

  const end = await checkDisk(t, fig, minute)
  const range = [floorTo(SAMPLE_MS, fig.startedAt), end] as const
  const metrics = await fig.readMetrics(...range)
  const written = sumOf(metrics.series.disk_write_bytes_per_sec)
  t.ok(
    isNear(written, FIG.writtenBytes + MiB, 2 * MiB),
    `wrote ${formatMiB(FIG.writtenBytes)}: ${formatMiB(written)}`,
  )
  checkHostIsUnknown(t, metrics)
  checkTraffic(t, hasOwnNetwork, metrics)

  const snapshot = await fig.readProcsAt(minute)
  await coordinator.api('POST', `/boxes/${fig.id}/suspend`)
  await coordinator.waitForState(fig.id, 'suspended')
  t.same(await fig.readMetrics(...range), metrics, 'the metrics are the same after the suspend')
  t.same(await fig.readProcsAt(minute), snapshot, 'the snapshot is the same after the suspend')
}

t.before(async () => {
  hostServer.listen(0, '0.0.0.0')
  await once(hostServer, 'listening')
})
t.teardown(() => {
  hostServer.close()
  return hostMemory.length
})
t.jobs = CONFIGURATIONS.length + 2

for (const [index, isolation] of CONFIGURATIONS.entries()) {
  const skip = problems[index] ?? false
  t.test(`${isolation.level}, network ${isolation.network}`, { skip, buffered: true }, (t) =>
    checkConfiguration(t, isolation),
  )
}

/** The argument of the run as an ordinary user. */
const LEVELS_ONLY = 'levels-only'
// In this file because it waits for a minute: while it does, no other test file could run in its process.
if (!process.argv.includes(LEVELS_ONLY))
  t.test(
    'samples and snapshots of the absence of a killed coordinator are stored after the restart',
    { buffered: true },
    checkMissedMetrics,
  )

const UNPRIVILEGED = [
  '--reuid=54323',
  '--regid=54323',
  '--clear-groups',
  '--inh-caps=-all',
  '--bounding-set=-all',
]

function getSkipReason(): string | false {
  if (process.getuid?.() !== 0) return 'the suite already runs as an ordinary user'
  const canRead = spawnSync('setpriv', [...UNPRIVILEGED, 'test', '-r', import.meta.filename])
  return canRead.status === 0 ? false : 'an ordinary user cannot read the project directory'
}

t.test('under an ordinary user', { skip: getSkipReason(), buffered: true }, async (t) => {
  const { TAP: _tap, ...env } = process.env
  const run = spawn('setpriv', [...UNPRIVILEGED, process.execPath, import.meta.filename, LEVELS_ONLY], {
    stdio: ['ignore', 'pipe', 'inherit'],
    env: { ...env, HOME: '/nonexistent', TAP: '1' },
  })
  t.teardown(() => run.kill())
  const output = Buffer.concat(await run.stdout.toArray()).toString()
  if (run.exitCode === null) await once(run, 'exit')
  t.equal(run.exitCode, 0, 'all levels pass')
  if (run.exitCode !== 0) t.comment(output)
})
