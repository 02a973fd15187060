// A hostile agent sends lies, enormous samples and snapshots, and thousands of lines through its tunnel: the coordinator stays
// within its heap and stores a bounded number of bytes, and the figures of the other box are its own.
import { readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import type { MetricsSample } from '../../shared/api/metrics.ts'
import { createDelta, EMPTY_SNAPSHOT } from '../../shared/process-delta.ts'
import { type Fleet, type FleetBox, startFleet } from '../support/fleet.ts'
import { connectHostileAgent, HostileReports, isReportRequest } from '../support/hostile-agent.ts'
import { limitsEnv } from '../support/limits-env.ts'
import { createMeasurements, floorTo, SAMPLE_MS } from '../support/measurements.ts'
import { getOpenApiCheck } from '../support/openapi-check.ts'
import { createSeededRandom } from '../support/random.ts'
import { LONG_DEADLINE_MS, waitUntil } from '../support/wait-until.ts'

const MiB = 1024 * 1024
/** The coordinator ends when its heap exceeds this. */
const HEAP_MIB = 96
const SENT_BYTES = 48 * MiB
const MAX_STORED_BYTES = 8 * MiB
const CONTROL = '\u001b[2J\u0007\r\n\u009b\u202e\0'
const MAX_INTEGER = 2 ** 50
const DAY = 24 * 3600

const random = createSeededRandom(17)
const integer = (max: number) => Math.floor(random() * max)
/** Different each time, and hardly compressible. */
const name = (length: number) =>
  (CONTROL + integer(2 ** 50).toString(36)).padEnd(length, String.fromCharCode(0x4e00 + integer(5000)))

const bucketNow = () => floorTo(SAMPLE_MS, Date.now()) / 1000
const VALUES: MetricsSample['values'] = {
  ...{ cpu_pct: 1, cpu_count: 1, mem_used_bytes: 1024, mem_total_bytes: 2048, load1: null, load5: null },
  ...{ load15: null, process_count: 1, listener_count: 1 },
  ...{ disk_read_bytes_per_sec: 1, disk_write_bytes_per_sec: 1 },
}
const sampleOf = (start: number, fields: object = {}) => ({
  ...{ type: 'metrics.sample', start, values: VALUES, fs: [], ifaces: [] },
  ...fields,
})

const createLargeSample = () =>
  sampleOf(bucketNow() - 30 * integer((31 * DAY) / 30), {
    values: { ...VALUES, cpu_pct: random() * 100, mem_used_bytes: integer(MAX_INTEGER), process_count: 1e9 },
    fs: Array.from({ length: 16 }, () => ({
      mount: name(256),
      ...{ used_bytes: integer(MAX_INTEGER), total_bytes: integer(MAX_INTEGER) },
      ...{ read_bytes_per_sec: integer(MAX_INTEGER), write_bytes_per_sec: integer(MAX_INTEGER) },
    })),
    ifaces: Array.from({ length: 16 }, () => ({
      name: name(256),
      ...{ rx_bytes_per_sec: integer(MAX_INTEGER), tx_bytes_per_sec: integer(MAX_INTEGER) },
    })),
  })

const createSnapshot = (delta: object | string, at = Date.now() - integer(31 * DAY * 1000)) => ({
  ...{ type: 'processes.snapshot', at, previousAt: null },
  delta: typeof delta === 'string' ? delta : JSON.stringify(delta),
})
const createLargeDelta = (count: number) => ({
  added: Array.from({ length: count }, (_, i) => [i + 1, 1, integer(2e12), name(20), name(20), name(60)]),
  removed: [],
  usage: Array.from({ length: count }, (_, i) => [i + 1, integer(1e9), integer(2 ** 40)]),
  ports: Array.from({ length: 100 }, (_, i) => [i + 1, i + 1, name(20)]),
  total: MAX_INTEGER,
})

const EMPTY_DELTA = { added: [], removed: [], usage: [], total: 1 }
/** Reports that the coordinator has to skip, or to store without harm. */
const LIES: (() => object)[] = [
  () => sampleOf(bucketNow() + 3600),
  () => sampleOf(-30),
  () => sampleOf(bucketNow() + 1),
  () => sampleOf(2 ** 53),
  ...[-1, 1e308, '1', null, {}, []].map(
    (value) => () => sampleOf(bucketNow(), { values: { ...VALUES, process_count: value, cpu_pct: value } }),
  ),
  () => sampleOf(bucketNow(), { values: { ...VALUES, process_count: 1e12 } }),
  () => sampleOf(bucketNow(), { fs: Array(100).fill({}) }),
  () => createSnapshot('['.repeat(100_000)),
  () => createSnapshot(`{"added":[${'0,'.repeat(70_000)}0]}`),
  () => createSnapshot('{"__proto__":{"added":1}}'),
  () => createSnapshot({ ...EMPTY_DELTA, removed: Array(1000).fill(7) }),
  () => createSnapshot({ ...EMPTY_DELTA, usage: [[1, -1, -1]] }),
  () => createSnapshot({ ...EMPTY_DELTA, total: -1 }),
  () => createSnapshot(createLargeDelta(500)),
  () => ({ ...createSnapshot(EMPTY_DELTA), previousAt: Date.now() }),
  () => createSnapshot(createLargeDelta(300), Date.now() + DAY * 1000),
  () => ({ type: 'machine', machine: { os: name(10_000) } }),
]
const LISTENERS = () => ({
  ...{ type: 'listeners', at: Date.now() },
  ports: JSON.stringify(Array.from({ length: 1000 }, (_, i) => [i + 1, i + 1, `${CONTROL}${integer(1e6)}`])),
})

/** Lines of many small reports, of large ones and of lies, until SENT_BYTES. Returns the last sequence number. */
async function sendLines(reports: HostileReports, epoch: string): Promise<number> {
  let seq = 0
  const toLine = (report: object) => `${JSON.stringify({ type: 'report', epoch, seq: ++seq, report })}\n`
  await reports.write(toLine(createSnapshot(createLargeDelta(300), Date.now())))
  for (let bytes = 0; bytes < SENT_BYTES; ) {
    const lie = LIES[seq % LIES.length] ?? LISTENERS
    const text = [
      ...Array.from({ length: 20 }, () => toLine(sampleOf(bucketNow() - 30 * integer(100_000)))),
      toLine(createLargeSample()),
      toLine(lie()),
      `${JSON.stringify(LISTENERS())}\n`,
    ].join('')
    bytes += text.length
    await reports.write(text)
  }
  return seq
}

/** A box whose agent sends one report after the other, when the coordinator has acknowledged the one before. */
async function connectAgent(t: Test, { url }: Fleet, box: FleetBox) {
  const reports = new HostileReports()
  const ws = await connectHostileAgent(url, box, (request) => {
    if (isReportRequest(request)) reports.serve(request)
  })
  t.after(() => ws.terminate())
  return { ws, reports, acknowledged: () => reports.lastAck?.seq }
}

const sizeOf = (dir: string): number =>
  readdirSync(dir, { withFileTypes: true, recursive: true })
    .filter((entry) => entry.isFile() && /sqlite|\.db/.test(entry.name))
    .reduce((sum, { parentPath, name }) => sum + statSync(join(parentPath, name)).size, 0)

t.test('lies and floods of samples, snapshots and ports', async (t) => {
  const { fleet, coordinator, stop } = await startFleet(2, {
    execArgv: [`--max-old-space-size=${HEAP_MIB}`, '--max-semi-space-size=1'],
    settings: limitsEnv({ edgeRequestsPerSecond: 100_000 }),
  })
  t.after(stop)
  const [hostile, other] = fleet.boxes
  if (hostile === undefined || other === undefined) throw new Error('the coordinator has too few boxes')
  const checkResponse = await getOpenApiCheck(fleet.url)
  const getJson = async (path: string) => {
    const response = await fetch(`${fleet.url}/api/v1${path}`, {
      headers: { authorization: `Bearer ${fleet.key}` },
    })
    const text = await response.text()
    checkResponse('GET', `/api/v1${path}`, { status: response.status, headers: response.headers, text })
    return JSON.parse(text)
  }
  const [bytesBefore, hostileAgent, otherAgent] = [
    sizeOf(fleet.dataDir),
    await connectAgent(t, fleet, hostile),
    await connectAgent(t, fleet, other),
  ]

  const start = bucketNow() - 600
  let otherSeq = 0
  const sendOther = async (report: object) => {
    otherSeq += 1
    void otherAgent.reports.write(
      `${JSON.stringify({ type: 'report', epoch: 'o', seq: otherSeq, report })}\n`,
    )
    await waitUntil('the report of the other box is stored', () => otherAgent.acknowledged() === otherSeq)
  }
  const snapshot = createDelta(EMPTY_SNAPSHOT, {
    processes: new Map([[7, { process: [7, 1, 1, 'box', 'sh', 'sh -l'], cpuTenths: 5, rssKiB: 4 }]]),
    ports: [[8080, 7, 'sh']],
    total: 1,
  })
  const at = Date.now()
  const sending = sendLines(hostileAgent.reports, 'h')
  await sendOther(createSnapshot(snapshot, at))
  for (let i = 0; i < 20; i++)
    await sendOther(sampleOf(start + 30 * i, { values: { ...VALUES, cpu_pct: i } }))
  const seq = await sending
  await waitUntil(
    'the hostile reports are acknowledged',
    () => hostileAgent.acknowledged() === seq,
    LONG_DEADLINE_MS,
  )
  t.equal(hostileAgent.ws.readyState, hostileAgent.ws.OPEN, 'the hostile agent stays connected')
  t.ok(coordinator.exitCode === null && coordinator.signalCode === null, 'the coordinator runs')

  await t.test('the other box has its own figures', async (t) => {
    const own = createMeasurements(other.boxId, getJson)
    const { series, fs, ifaces } = await own.readMetrics(start * 1000, (start + 600) * 1000)
    t.same(
      series.cpu_pct.avg,
      Array.from({ length: 20 }, (_, i) => i),
    )
    t.same([fs, ifaces], [[], []])
    t.match(await own.readProcsAt(at), {
      procs: [{ pid: 7, command: 'sh -l' }],
      ports: [{ port: 8080 }],
      total: 1,
    })
    void otherAgent.reports.write(`${JSON.stringify({ type: 'listeners', at, ports: '[[8080,7,"sh"]]' })}\n`)
    const ports = await waitUntil('the ports of the other box are listed', own.readListening)
    t.same(ports, [{ port: 8080, process: 'sh', pid: 7 }])
  })

  await t.test('the figures of the hostile box are valid text and numbers, of its past', async (t) => {
    const own = createMeasurements(hostile.boxId, getJson)
    const spans = [3600, DAY, 30 * DAY].map((seconds) => [Date.now() - seconds * 1000, Date.now()] as const)
    const answers: object[] = await Promise.all(spans.map(([from, to]) => own.readMetrics(from, to)))
    const hostileSnapshot = await own.readProcsAt(at)
    t.equal(hostileSnapshot.procs.length, 300)
    void hostileAgent.reports.write(`${JSON.stringify(LISTENERS())}\n`)
    answers.push(
      hostileSnapshot,
      await waitUntil('the ports of the hostile box are listed', own.readListening),
    )
    answers.push(await getJson(`/boxes/${hostile.boxId}`))
    for (const answer of answers) {
      const text = JSON.stringify(answer, (_key, value) =>
        typeof value === 'string' ? value.replace(/\p{C}/gu, '<control>') : value,
      )
      t.notMatch(
        text,
        /<control>|:-\d/,
        `${text.length} characters without control characters and negative numbers`,
      )
    }
    const month = await own.readMetrics(Date.now() - 30 * DAY * 1000, Date.now() + DAY * 1000)
    t.ok((month.buckets.at(-1) ?? 0) * 1000 <= Date.now(), 'no bucket is of the future')
    t.ok(month.fs.length <= 64 && month.ifaces.length <= 64)
  })

  const stored = sizeOf(fleet.dataDir) - bytesBefore
  t.ok(
    stored < MAX_STORED_BYTES,
    `${seq} reports of ${SENT_BYTES / MiB} MiB: ${(stored / MiB).toFixed(1)} MiB stored`,
  )
})
