// The definitions of all metrics of a coordinator.
import { Server } from 'node:http'
import { createPrometheusMetrics } from '../../../coordinator/telemetry/prometheus/prometheus-metrics.ts'
import { systemClock } from '../../../shared/clock.ts'

export type MetricDefinition = { name: string; type: string; labels: readonly string[]; help: string }

type Metric = { name: string; help: string; type: string; labelNames: readonly string[] }

export async function listMetricDefinitions(): Promise<MetricDefinition[]> {
  const { registry, addServer, addSources } = createPrometheusMetrics(systemClock)
  addServer(new Server())
  addSources({
    edge: { limiter: { acquiredCount: () => 0 }, tunnels: { on: () => undefined } },
    lifecycle: { countBoxes: async () => new Map() },
    diskReserve: { isReleased: false },
  })
  const types = new Map((await registry.getMetricsAsJSON()).map(({ name, type }) => [name, String(type)]))
  const metrics = registry.getMetricsAsArray() as unknown as Metric[]
  return metrics.map(({ name, help, labelNames }) => ({
    name,
    help,
    labels: labelNames,
    type: types.get(name) ?? '',
  }))
}
