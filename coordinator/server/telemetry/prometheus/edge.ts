// Metrics of the edge's limits.
import { Counter, type Registry } from 'prom-client'
import type { EdgeLimit } from '../../../edge/limits.ts'

export function createLimitMetrics(registers: Registry[]): (limit: EdgeLimit) => void {
  const rejections = new Counter({
    name: 'boxwood_edge_rejections_total',
    help: 'Edge requests that were rejected, by the limit of the API key or box that they reached.',
    labelNames: ['limit'],
    registers,
  })
  return (limit) => rejections.inc({ limit })
}
