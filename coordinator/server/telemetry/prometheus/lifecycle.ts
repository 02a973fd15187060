// Metrics of lifecycle jobs.
import { Counter, Gauge, Histogram, type Registry } from 'prom-client'
import type { StepObserver } from '../../../boxes/lifecycle/step-observer.ts'
import { OP_DEFINITIONS } from '../../../boxes/lifecycle/transitions.ts'

const BUCKETS = [0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300]

export function createStepMetrics(registers: Registry[]): StepObserver {
  const step = new Histogram({
    name: 'boxwood_job_step_duration_seconds',
    help: 'Duration of the steps of lifecycle jobs. Outcome interrupted: the desired state changed, or the coordinator stopped.',
    labelNames: ['op', 'step', 'outcome'],
    buckets: BUCKETS,
    registers,
  })
  const running = new Gauge({
    name: 'boxwood_job_steps_running',
    help: 'Steps of lifecycle jobs that run now.',
    labelNames: ['op', 'step'],
    registers,
  })
  const failures = new Counter({
    name: 'boxwood_job_step_failures_total',
    help: 'Failed steps of lifecycle jobs. Retry no: the job has failed.',
    labelNames: ['op', 'step', 'retry'],
    registers,
  })
  // Prometheus counts no increase when a series appears with the value 1.
  for (const [op, { stages }] of Object.entries(OP_DEFINITIONS))
    for (const { step } of stages) for (const retry of ['yes', 'no']) failures.inc({ op, step, retry }, 0)
  const job = new Histogram({
    name: 'boxwood_job_duration_seconds',
    help: 'Duration of the completed lifecycle jobs. A retry after a delay starts a new measurement.',
    labelNames: ['op'],
    buckets: BUCKETS,
    registers,
  })
  return {
    async observe({ op, step: name }, run) {
      const startedAt = performance.now()
      let outcome = 'completed'
      running.inc({ op, step: name })
      try {
        return await run()
      } catch (error) {
        outcome = error instanceof Error ? 'failed' : 'interrupted'
        throw error
      } finally {
        running.dec({ op, step: name })
        step.observe({ op, step: name, outcome }, (performance.now() - startedAt) / 1000)
      }
    },
    onFailure: ({ op, step: name }, isFinal) =>
      failures.inc({ op, step: name, retry: isFinal ? 'no' : 'yes' }),
    onJobComplete: (op, durationMs) => job.observe({ op }, durationMs / 1000),
  }
}
