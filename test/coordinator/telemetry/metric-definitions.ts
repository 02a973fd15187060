// The definitions of all metrics of a coordinator.
import { Server } from 'node:http'
import { createSlotMetric } from '../../../coordinator/edge/slot-metric.ts'
import { createBoxCounts } from '../../../coordinator/lifecycle/box-counts.ts'
import { createDiskMetric } from '../../../coordinator/lifecycle/disk-metric.ts'
import { createPrometheusMetrics } from '../../../coordinator/telemetry/prometheus/prometheus-metrics.ts'
import { createTunnelMetrics } from '../../../coordinator/tunnel/metrics.ts'
import { systemClock } from '../../../shared/clock.ts'

export type MetricDefinition = { name: string; type: string; labels: readonly string[]; help: string }

type Metric = { name: string; help: string; type: string; labelNames: readonly string[] }

export async function listMetricDefinitions(): Promise<MetricDefinition[]> {
  const { registry, addServer, addMetrics } = createPrometheusMetrics(systemClock)
  addServer(new Server())
  addMetrics([
    ...createTunnelMetrics({ on: () => undefined }),
    createSlotMetric({ acquiredCount: () => 0 }),
    createBoxCounts(async () => new Map()),
    createDiskMetric({ isReleased: false }),
  ])
  const types = new Map((await registry.getMetricsAsJSON()).map(({ name, type }) => [name, String(type)]))
  const metrics = registry.getMetricsAsArray() as unknown as Metric[]
  return metrics.map(({ name, help, labelNames }) => ({
    name,
    help,
    labels: labelNames,
    type: types.get(name) ?? '',
  }))
}
