// How many machines wait for a box, as a metric.
import type { Metric } from '../http/module.ts'
import type { WarmPool } from './pool.ts'

export const createWarmMetric = ({ countReady }: Pick<WarmPool, 'countReady'>): Metric => ({
  type: 'gauge',
  name: 'boxwood_warm_machines',
  help: 'Machines that wait for a box',
  label: 'region',
  collect: countReady,
})
