// Registers the metrics that the modules provide. Their values are read when the metrics are read.
import { Counter, Gauge, type Registry } from 'prom-client'
import type { Metric } from '../../../http/module.ts'

export function addModuleMetrics(registers: Registry[], metrics: readonly Metric[]): void {
  for (const metric of metrics) register(registers, metric)
}

function register(registers: Registry[], { type, name, help, label, collect }: Metric): void {
  const Class = type === 'gauge' ? Gauge : Counter
  new Class({
    name,
    help,
    labelNames: label === undefined ? [] : [label],
    registers,
    async collect(this: Gauge | Counter) {
      const values = await collect()
      this.reset()
      for (const [value, count] of values ?? [])
        if (label === undefined) this.inc(count)
        else this.inc({ [label]: value }, count)
    },
  })
}
