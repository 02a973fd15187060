// Sets up metrics on a test database, and reports samples as a box does.

import { applyReports } from '../../../../coordinator/boxes/lifecycle/apply-reports.ts'
import type { Db } from '../../../../coordinator/db/open.ts'
import { createMetrics, type Metrics } from '../../../../coordinator/history/metrics/metrics.ts'
import type { Actor } from '../../../../coordinator/http/actor.ts'
import type { MetricsSample } from '../../../../shared/api/metrics.ts'
import { noReportHandlers } from '../../../support/report-handlers.ts'
import {
  createOwner,
  createTestBoxService,
  createTestClock,
  type TestClock,
} from '../../../support/workspace.ts'

export type SequencedSample = { seq: number; report: MetricsSample }

export type Setup = {
  db: Db
  clock: TestClock
  owner: Actor
  boxId: string
  logged: Record<string, unknown>[]
  createBox(): Promise<string>
  /** The metrics of a coordinator that has just started. */
  restart(): void
  get: Metrics['service']['get']
  averageCpu: Metrics['service']['averageCpu']
  /** Applies samples that have sequence numbers. */
  apply(reports: readonly SequencedSample[], epoch?: string, boxId?: string): Promise<void>
  /** Applies new samples, in order. */
  report(samples: readonly MetricsSample[], boxId?: string): Promise<void>
}

export async function setUp(db: Db, clock = createTestClock()): Promise<Setup> {
  const owner = await createOwner(db, clock)
  const boxes = createTestBoxService(db, { clock })
  const { id: boxId } = await boxes.create(owner, {})
  const logged: Record<string, unknown>[] = []
  const log = {
    warn: (line: Record<string, unknown>) => void logged.push(line),
    error: (line: Record<string, unknown>) => void logged.push(line),
  }
  const createService = () => createMetrics({ db, clock, log: log as never, boxes })
  let metrics = createService()
  let seq = 0

  const apply: Setup['apply'] = (reports, epoch = 'e1', from = boxId) =>
    applyReports(db, { ...noReportHandlers, metrics: metrics.reportHandler }, [
      { boxId: from, epoch, reports },
    ])

  return {
    ...{ db, clock, owner, boxId, logged, apply },
    createBox: async () => (await boxes.create(owner, {})).id,
    restart() {
      metrics = createService()
    },
    get: (actor, id, query) => metrics.service.get(actor, id, query),
    averageCpu: (id, range) => metrics.service.averageCpu(id, range),
    async report(samples, from = boxId) {
      await apply(
        samples.map((report) => ({ seq: ++seq, report })),
        'e1',
        from,
      )
    },
  }
}

const NO_VALUES: MetricsSample['values'] = {
  cpu_pct: null,
  cpu_count: null,
  mem_used_bytes: null,
  mem_total_bytes: null,
  load1: null,
  load5: null,
  load15: null,
  process_count: null,
  listener_count: null,
  disk_read_bytes_per_sec: null,
  disk_write_bytes_per_sec: null,
}

export const sample = (
  start: number,
  values: Partial<MetricsSample['values']> = { cpu_pct: 50 },
  groups: Partial<Pick<MetricsSample, 'fs' | 'ifaces'>> = {},
): MetricsSample => ({
  type: 'metrics.sample',
  start,
  values: { ...NO_VALUES, ...values },
  fs: [],
  ifaces: [],
  ...groups,
})
