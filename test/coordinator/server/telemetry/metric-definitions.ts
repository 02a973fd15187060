// The definitions of all metrics of a coordinator.
import { Server } from 'node:http'
import { createTunnelMetrics } from '../../../../coordinator/agents/tunnel/metrics.ts'
import { createBoxCounts } from '../../../../coordinator/boxes/lifecycle/box-counts.ts'
import { createDiskMetric } from '../../../../coordinator/boxes/lifecycle/disk-metric.ts'
import { BrokerMetrics } from '../../../../coordinator/edge/secret-broker/metrics.ts'
import { createShareMetrics } from '../../../../coordinator/edge/shared-ports/metrics.ts'
import { createSlotMetric } from '../../../../coordinator/edge/slot-metric.ts'
import { createFeedMetric } from '../../../../coordinator/feed/feed-metric.ts'
import { createPrometheusMetrics } from '../../../../coordinator/server/telemetry/prometheus/prometheus-metrics.ts'
import { createWarmMetric } from '../../../../coordinator/warm-machines/metric.ts'
import { systemClock } from '../../../../shared/clock.ts'

export type MetricDefinition = { name: string; type: string; labels: readonly string[]; help: string }

type Metric = { name: string; help: string; type: string; labelNames: readonly string[] }

export async function listMetricDefinitions(): Promise<MetricDefinition[]> {
  const { registry, addServer, addMetrics } = createPrometheusMetrics(systemClock)
  addServer(new Server())
  addMetrics([
    ...createTunnelMetrics({ on: () => undefined }),
    createFeedMetric({ count: 0 }),
    createSlotMetric({ acquiredCount: () => 0 }),
    ...createShareMetrics({ size: 0 }, { size: { ports: 0, connections: 0 } }),
    ...new BrokerMetrics().list(() => 0),
    createBoxCounts(async () => new Map()),
    createDiskMetric({ isReleased: false }),
    createWarmMetric({ countReady: async () => new Map() }),
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
