// Metrics of the agents' reports.
import { Counter, Histogram, type Registry } from 'prom-client'
import type { DurableReport } from '../../../../shared/api/reports.ts'
import type { Clock } from '../../../../shared/clock.ts'
import { SAMPLE_SECONDS } from '../../../../shared/report-limits.ts'
import type { Ingest } from '../../../agents/tunnel/reports.ts'

const LAG_BUCKETS = [0.05, 0.1, 0.25, 0.5, 1, 5, 30, 60, 300, 3600, 86_400]
const COMMIT_BUCKETS = [0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1, 5]
/** A clock of a box that is wrong by years must not dominate the sum. */
const MAX_LAG_SECONDS = 30 * 86_400

/** Returns the time of the reported event, in milliseconds since the epoch by the clock of the box; undefined: not reported. */
function getEventTime(report: DurableReport): number | undefined {
  switch (report.type) {
    case 'agent.started':
    case 'processes.snapshot':
      return report.at
    case 'command.started':
      return report.startedAt
    case 'command.finished':
      return report.finishedAt ?? undefined
    case 'metrics.sample':
      return (report.start + SAMPLE_SECONDS) * 1000
    case 'command.output':
    case 'machine':
      return undefined
  }
}

export function createIngestMetrics(registers: Registry[], clock: Clock): (ingest: Ingest) => Ingest {
  const reports = new Counter({
    name: 'boxwood_reports_total',
    help: 'Reports of agents that were committed, by type.',
    labelNames: ['type'],
    registers,
  })
  const failures = new Counter({
    name: 'boxwood_report_commit_failures_total',
    help: 'Groups of reports that were not committed. The agents send them again.',
    registers,
  })
  const lag = new Histogram({
    name: 'boxwood_report_lag_seconds',
    help: 'Age of the reports when they were committed, by the clock of the box. An agent that was disconnected sends old reports.',
    labelNames: ['type'],
    buckets: LAG_BUCKETS,
    registers,
  })
  const commit = new Histogram({
    name: 'boxwood_report_commit_duration_seconds',
    help: 'Time from the arrival of reports to their commit.',
    buckets: COMMIT_BUCKETS,
    registers,
  })
  const heartbeats = new Counter({
    name: 'boxwood_heartbeats_total',
    help: 'Heartbeats of agents.',
    registers,
  })
  return (ingest) => ({
    ...ingest,
    async apply(boxId, epoch, batch) {
      const startedAt = performance.now()
      try {
        await ingest.apply(boxId, epoch, batch)
      } catch (error) {
        failures.inc()
        throw error
      }
      commit.observe((performance.now() - startedAt) / 1000)
      const now = clock.now()
      for (const { report } of batch) {
        const { type } = report
        reports.inc({ type })
        const at = getEventTime(report)
        if (at !== undefined) lag.observe({ type }, Math.min(MAX_LAG_SECONDS, Math.max(0, (now - at) / 1000)))
      }
    },
    heartbeat(...heartbeat) {
      heartbeats.inc()
      ingest.heartbeat(...heartbeat)
    },
  })
}
