// Metrics of the edge's limits.
import { Counter, Gauge, type Registry } from 'prom-client'
import type { EdgeLimit, EdgeLimiter } from '../../edge/limits.ts'

export function createLimitMetrics(registers: Registry[]): (limit: EdgeLimit) => void {
  const rejections = new Counter({
    name: 'boxwood_edge_rejections_total',
    help: 'Edge requests that were rejected, by the limit of the API key or box that they reached.',
    labelNames: ['limit'],
    registers,
  })
  return (limit) => rejections.inc({ limit })
}

export function createSlotMetrics(registers: Registry[], limiter: Pick<EdgeLimiter, 'acquiredCount'>): void {
  new Gauge({
    name: 'boxwood_edge_slots_acquired',
    help: 'Edge requests, streams and attached connections that hold a slot.',
    registers,
    collect() {
      this.set(limiter.acquiredCount())
    },
  })
}
