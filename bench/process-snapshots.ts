// Measures the cost of process snapshots in the coordinator: the stored bytes, storing one, and finding one.
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { sql } from 'kysely'
import { createBoxFinder } from '../coordinator/boxes/find-box.ts'
import { applyReports } from '../coordinator/boxes/lifecycle/apply-reports.ts'
import { createBoxService } from '../coordinator/boxes/service.ts'
import { type Db, openDatabase } from '../coordinator/db/open.ts'
import { createProcessSnapshots } from '../coordinator/history/process-snapshots/process-snapshots.ts'
import type { Actor } from '../coordinator/http/actor.ts'
import { ensureFirstWorkspace } from '../coordinator/identity/keys/keys.ts'
import { serveAllRegions } from '../coordinator/providers/regions.ts'
import { newApiKey } from '../shared/api-key.ts'
import { createDelta, EMPTY_SNAPSHOT } from '../shared/process-delta.ts'
import { SNAPSHOT_SECONDS } from '../shared/report-limits.ts'
import { createTestBoxHooks } from '../test/support/box-hooks.ts'
import { FakeInfrastructure } from '../test/support/fake-infrastructure.ts'
import { createSeededRandom } from '../test/support/random.ts'
import { TEST_HOST } from '../test/support/replica.ts'
import { noReportHandlers } from '../test/support/report-handlers.ts'
import { createProcessTable } from './support/process-tables.ts'
import { formatNumber, median, toMiB } from './support/stats.ts'
import type { Table } from './support/table.ts'

const PROCESS_COUNTS = [30, 150]
const HOUR_MS = 3_600_000
const MONTH_MS = 30 * 24 * HOUR_MS
const SNAPSHOT_MS = SNAPSHOT_SECONDS * 1000
const QUERY_RUNS = 300
/** A period of stored snapshots: the first ones cost less to store than the last ones. */
const SINGLE_MS = 4 * HOUR_MS
const BOX_COUNT = 10_000

export async function benchProcessSnapshots(): Promise<Table[]> {
  const dir = await mkdtemp(join(tmpdir(), 'boxwood-bench-'))
  const db = await openDatabase({ kind: 'sqlite', file: join(dir, 'boxwood.db') })
  try {
    const rows: string[][] = []
    const owner = await createOwner(db)
    for (const count of PROCESS_COUNTS) rows.push(await measure(db, owner, count))
    const columns = [
      'processes',
      'stored bytes per month (MiB)',
      'changes per snapshot',
      'CPU to store one (ms)',
      `CPU for ${BOX_COUNT} boxes (% of one core)`,
      'p50 of procs-at (ms)',
    ]
    return [{ title: 'Process snapshots of one box', columns, rows }]
  } finally {
    await db.destroy()
    await rm(dir, { recursive: true, force: true })
  }
}

async function createOwner(db: Db): Promise<Actor> {
  await ensureFirstWorkspace({ db, clock: { now: Date.now }, newApiKey, storeKey: async () => undefined })
  const { id: workspaceId } = await db.selectFrom('workspaces').select('id').executeTakeFirstOrThrow()
  const { id: userId } = await db.selectFrom('users').select('id').executeTakeFirstOrThrow()
  return { workspaceId, userId, role: 'owner', boxIds: null, access: null } as Actor
}

async function measure(db: Db, owner: Actor, processCount: number): Promise<string[]> {
  const end = Math.ceil(Date.now() / SINGLE_MS) * SINGLE_MS
  const clock = { now: () => end }
  const boxes = createBoxService({
    db,
    finder: createBoxFinder(db),
    clock,
    host: TEST_HOST,
    ...createTestBoxHooks(db, clock),
    schedule: () => undefined,
    regions: serveAllRegions(new FakeInfrastructure().provider),
    isConnected: () => false,
    latestHeartbeat: () => undefined,
  })
  const snapshots = createProcessSnapshots({ db, clock, boxes, log: { warn: () => undefined } as never })
  const { id: boxId } = await boxes.create(owner, {})
  const random = createSeededRandom(processCount)
  const advance = createProcessTable(processCount, random, end - MONTH_MS)
  let previous = { at: 0, snapshot: EMPTY_SNAPSHOT }
  let changes = 0
  let seq = 0

  function nextReport(minute: number) {
    const at = minute + Math.floor(random() * 20)
    const processes = advance(at)
    const snapshot = { processes, ports: [], total: processes.size }
    const isComplete = Math.floor(at / HOUR_MS) !== Math.floor(previous.at / HOUR_MS)
    const delta = createDelta(isComplete ? EMPTY_SNAPSHOT : previous.snapshot, snapshot)
    if (!isComplete) changes += delta.usage.length + delta.removed.length
    const previousAt = isComplete ? null : previous.at
    previous = { at, snapshot }
    const report = { type: 'processes.snapshot', at, previousAt, delta: JSON.stringify(delta) } as const
    return { seq: ++seq, report }
  }
  const handlers = { ...noReportHandlers, processSnapshots: snapshots.reportHandler }
  const apply = (reports: ReturnType<typeof nextReport>[]) =>
    applyReports(db, handlers, [{ boxId, epoch: 'e', reports }])

  for (let hour = end - MONTH_MS; hour < end - SINGLE_MS; hour += HOUR_MS)
    await apply(
      Array.from({ length: HOUR_MS / SNAPSHOT_MS }, (_, minute) => nextReport(hour + minute * SNAPSHOT_MS)),
    )
  const last = Array.from({ length: SINGLE_MS / SNAPSHOT_MS }, (_, minute) =>
    nextReport(end - SINGLE_MS + minute * SNAPSHOT_MS),
  )
  const before = process.cpuUsage()
  for (const report of last) await apply([report])
  const { user, system } = process.cpuUsage(before)
  const storeMs = (user + system) / 1000 / last.length

  const stored = await db
    .selectFrom('process_chunks')
    .select((eb) => eb.fn.sum<number>(sql`length(data)`).as('bytes'))
    .where('box_id', '=', boxId)
    .executeTakeFirstOrThrow()
  const durations: number[] = []
  for (let i = 0; i < QUERY_RUNS; i++) {
    const started = performance.now()
    await snapshots.procsAt.get(owner, boxId, end - HOUR_MS - random() * (MONTH_MS - 2 * HOUR_MS))
    durations.push(performance.now() - started)
  }
  return [
    String(processCount),
    formatNumber(toMiB(Number(stored.bytes))),
    formatNumber(changes / seq),
    formatNumber(storeMs),
    formatNumber(((BOX_COUNT / SNAPSHOT_SECONDS) * storeMs) / 10),
    formatNumber(median(durations)),
  ]
}
