// The acquired slots of the edge, as a metric.
import type { Metric } from '../http/module.ts'
import type { EdgeLimiter } from './limits.ts'

export const createSlotMetric = (limiter: Pick<EdgeLimiter, 'acquiredCount'>): Metric => ({
  type: 'gauge',
  name: 'boxwood_edge_slots_acquired',
  help: 'Edge requests, streams, attached and forwarded connections that hold a slot.',
  collect: () => new Map([['', limiter.acquiredCount()]]),
})
