// Measures the cost of metrics in the coordinator: storing samples, the stored bytes, and the time of queries.
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { sql } from 'kysely'
import { applyReports } from '../coordinator/boxes/lifecycle/apply-reports.ts'
import { createReportQueue } from '../coordinator/boxes/lifecycle/report-queue.ts'
import type { Db } from '../coordinator/db/open.ts'
import { createMetrics } from '../coordinator/history/metrics/metrics.ts'
import type { Provider } from '../coordinator/providers/provider.ts'
import { type Coordinator, startCoordinator } from '../coordinator/server/app.ts'
import { loadConfig } from '../coordinator/server/config.ts'
import type { MetricsSample } from '../shared/api/metrics.ts'
import { durableReportSchema, reportLineSchema } from '../shared/api/reports.ts'
import { parseBoundedJson } from '../shared/bounded-json.ts'
import { SAMPLE_SECONDS } from '../shared/report-limits.ts'
import { noReportHandlers } from '../test/support/report-handlers.ts'
import { withoutArchives } from '../test/support/without-archives.ts'
import { createBusyBox } from './support/busy-box.ts'
import { formatNumber, measureRuns, median, toMiB } from './support/stats.ts'
import type { Table } from './support/table.ts'

const DAY = 24 * 3600
const MONTH = 30 * DAY
const BOX_COUNT = 10_000
const QUERY_RUNS = 300
/** Samples per batch of a box that reconnects. */
const BATCH_SIZE = 120

/** Starts no machines. */
const provider: Provider = {
  ...withoutArchives,
  name: 'simulated',
  describe: () => 'simulated machines',
  create: async () => ({ isolation: null }),
  start: async () => ({ isolation: null }),
  stop: async () => undefined,
  destroy: async () => undefined,
  inspect: async () => 'running',
  close: async () => undefined,
}

export async function benchMetrics(): Promise<Table[]> {
  const dir = await mkdtemp(join(tmpdir(), 'boxwood-bench-'))
  const config = loadConfig({
    BOXWOOD_DATA: dir,
    BOXWOOD_LISTEN: '127.0.0.1:0',
    BOXWOOD_LOG: 'fatal',
  })
  // Half an hour before the end of a period, so that the chunks of the current hour are half full.
  const end = Math.floor(Date.now() / 1000 / 3600) * 3600 + 1800
  const coordinator = await startCoordinator(config, { provider, clock: { now: () => end * 1000 } })
  try {
    return await measure(await createSetup(coordinator, end))
  } finally {
    await coordinator.close()
    await rm(dir, { recursive: true, force: true })
  }
}

/** A coordinator with a box that reports samples. */
type Setup = {
  coordinator: Coordinator
  owner: NonNullable<Coordinator['owner']>
  boxId: string
  /** Creates the samples of the box, in order. */
  sampleAt(start: number): MetricsSample
  /** The time after the last sample of the month, in seconds. */
  end: number
}

async function createSetup(coordinator: Coordinator, end: number): Promise<Setup> {
  const { owner } = coordinator
  if (!owner) throw new Error('the coordinator has no owner')
  const { id: boxId } = await coordinator.context.boxes.create(owner, {})
  return { coordinator, owner, boxId, sampleAt: createBusyBox(1), end }
}

async function measure(setup: Setup): Promise<Table[]> {
  const { chunks, bytes, cpuSeconds } = await storeMonth(setup)
  const queryRows = await measureQueries(setup)
  const { share, commits } = await measureIngest(setup)
  return [
    {
      title: 'Metrics of one box in 30 days',
      columns: ['stored chunks', 'stored bytes (MiB)', 'CPU to store all samples at once (s)'],
      rows: [[String(chunks), formatNumber(toMiB(bytes)), formatNumber(cpuSeconds)]],
    },
    {
      title: 'Queries of metrics',
      columns: ['span', 'p50 in the process (ms)', 'p50 over HTTP (ms)'],
      rows: queryRows,
    },
    {
      title: `Storing the samples of ${BOX_COUNT} boxes, one every ${SAMPLE_SECONDS} s`,
      columns: ['CPU (% of one core)', 'transactions per second'],
      rows: [[formatNumber(share * 100), formatNumber(commits)]],
    },
  ]
}

/** Stores all samples of the month in batches, as from a box that reconnects. */
async function storeMonth({ coordinator, boxId, sampleAt, end }: Setup) {
  const { db, boxes, log } = coordinator.context
  // The clock follows the samples, so that the limit of hours per box is refilled.
  let now = end - MONTH
  const { reportHandler } = createMetrics({ db, clock: { now: () => now * 1000 }, log, boxes })
  const handlers = { ...noReportHandlers, metrics: reportHandler }
  let seq = 0
  let batch = []
  const before = process.cpuUsage()
  for (let start = end - MONTH; start < end; start += SAMPLE_SECONDS) {
    batch.push({ seq: ++seq, report: sampleAt(start) })
    if (batch.length < BATCH_SIZE && start < end - SAMPLE_SECONDS) continue
    now = start
    await applyReports(db, handlers, [{ boxId, epoch: 'e', reports: batch }])
    batch = []
  }
  const cpuSeconds = toSeconds(process.cpuUsage(before))
  const { chunks, bytes } = await db
    .selectFrom('metric_chunks')
    .select((eb) => [eb.fn.countAll<number>().as('chunks'), eb.fn.sum<number>(sql`length(data)`).as('bytes')])
    .executeTakeFirstOrThrow()
  return { chunks, bytes: Number(bytes), cpuSeconds }
}

async function measureQueries({ coordinator, owner, boxId, end }: Setup): Promise<string[][]> {
  const key = (await readFile(join(coordinator.dataDirectory.dir, 'owner.key'), 'utf8')).trim()
  const rows: string[][] = []
  for (const [name, span] of [
    ['1 hour', 3600],
    ['24 hours', DAY],
    ['30 days', MONTH],
  ] as const) {
    const query = { from: (end - span) * 1000, to: end * 1000 }
    const inProcess = await measureRuns(QUERY_RUNS, 1, async () => {
      await coordinator.context.boxMetrics.service.get(owner, boxId, query)
    })
    const url = `${coordinator.url}/api/v1/boxes/${boxId}/metrics?from=${end - span}&to=${end}`
    const overHttp = await measureRuns(QUERY_RUNS, 1, async () => {
      const response = await fetch(url, { headers: { authorization: `Bearer ${key}` } })
      if (!response.ok) throw new Error(`${url} returned status ${response.status}`)
      await response.text()
    })
    rows.push([name, formatNumber(median(inProcess)), formatNumber(median(overHttp))])
  }
  return rows
}

/** Stores one sample of each copy of the box, evenly distributed over 30 seconds. */
async function measureIngest({ coordinator, boxId, sampleAt, end }: Setup) {
  const { db, boxMetrics: metrics } = coordinator.context
  const ids = await copyBox(db, boxId, BOX_COUNT)
  let commitCount = 0
  const queue = createReportQueue(db, {
    ...noReportHandlers,
    metrics: metrics.reportHandler,
    commands: {
      ...noReportHandlers.commands,
      async loadKey() {
        commitCount += 1
      },
    },
  })
  const seq = MONTH / SAMPLE_SECONDS + 1
  const line = JSON.stringify({ type: 'report', epoch: 'e', seq, report: sampleAt(end) })
  const before = process.cpuUsage()
  const started = performance.now()
  const work: Promise<void>[] = []
  let sent = 0
  while (sent < ids.length) {
    const due = Math.min(ids.length, ((performance.now() - started) / 1000 / SAMPLE_SECONDS) * ids.length)
    for (; sent < due; sent += 1) {
      const parsed = reportLineSchema.parse(parseBoundedJson(line, 512), { reportInput: true })
      if (!('report' in parsed)) throw new Error('not a report')
      const report = durableReportSchema.parse(parsed.report, { reportInput: true })
      work.push(queue.apply({ boxId: ids[sent] ?? '', epoch: 'e', reports: [{ seq, report }] }))
    }
    await sleep(1)
  }
  await Promise.all(work)
  const seconds = (performance.now() - started) / 1000
  await queue.close()
  return { share: toSeconds(process.cpuUsage(before)) / seconds, commits: commitCount / seconds }
}

/** Copies the box with its current hour. Returns the ids of the copies. */
async function copyBox(db: Db, id: string, count: number): Promise<string[]> {
  const box = await db.selectFrom('boxes').selectAll().where('id', '=', id).executeTakeFirstOrThrow()
  const chunk = await db
    .selectFrom('metric_chunks')
    .selectAll()
    .where('box_id', '=', id)
    .where('pending_rollup', '=', 1)
    .executeTakeFirstOrThrow()
  const ids = Array.from({ length: count }, () => crypto.randomUUID())
  await db.transaction().execute(async (trx) => {
    for (const [i, copyId] of ids.entries()) {
      await trx
        .insertInto('boxes')
        .values({ ...box, id: copyId, hostname: `box-${i}` })
        .execute()
      await trx
        .insertInto('metric_chunks')
        .values({ ...chunk, box_id: copyId })
        .execute()
    }
  })
  return ids
}

const toSeconds = ({ user, system }: NodeJS.CpuUsage): number => (user + system) / 1e6
