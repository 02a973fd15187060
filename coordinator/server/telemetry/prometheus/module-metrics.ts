// Registers the metrics that the modules provide. Their values are read when the metrics are read.
import { Counter, Gauge, type Registry } from 'prom-client'
import type { Metric } from '../../../http/module.ts'

export function addModuleMetrics(registers: Registry[], metrics: readonly Metric[]): void {
  for (const metric of metrics) register(registers, metric)
}

function register(registers: Registry[], { type, name, help, label, isOfDatabase, collect }: Metric): void {
  const source = isOfDatabase === undefined ? {} : { source: 'database' }
  const Class = type === 'gauge' ? Gauge : Counter
  new Class({
    name,
    help,
    labelNames: [...(label === undefined ? [] : [label]), ...Object.keys(source)],
    registers,
    async collect(this: Gauge | Counter) {
      const values = await collect()
      this.reset()
      for (const [value, count] of values ?? [])
        this.inc({ ...(label === undefined ? {} : { [label]: value }), ...source }, count)
    },
  })
}
