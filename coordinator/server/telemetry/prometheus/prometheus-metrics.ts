// The coordinator's metrics for Prometheus: creates the registry and all metrics.

import type { Server } from 'node:http'
import { collectDefaultMetrics, Gauge, Registry } from 'prom-client'
import type { Clock } from '../../../../shared/clock.ts'
import { VERSION } from '../../../../shared/version.ts'
import type { Metric } from '../../../http/module.ts'
import type { Observers } from '../observers.ts'
import { createRejectionMetrics, createTunnelRequestMetrics } from './agents.ts'
import { createLimitMetrics } from './edge.ts'
import { createConnectionMetrics, createRequestMetrics } from './http.ts'
import { createStepMetrics } from './lifecycle.ts'
import { addModuleMetrics } from './module-metrics.ts'
import { createIngestMetrics } from './reports.ts'
import { createStoreMetrics } from './store.ts'

export type PrometheusMetrics = {
  readonly registry: Registry
  readonly observers: Required<Observers>
  /** Adds the connections of the server. Call it before the first connection. */
  addServer(server: Server): void
  /** Adds the metrics of the modules. */
  addMetrics(metrics: readonly Metric[]): void
}

export function createPrometheusMetrics(clock: Clock): PrometheusMetrics {
  const registry = new Registry()
  const registers = [registry]
  collectDefaultMetrics({ register: registry })
  new Gauge({
    name: 'boxwood_build_info',
    help: 'Always 1. The label has the version of the coordinator.',
    labelNames: ['version'],
    registers,
  }).set({ version: VERSION }, 1)
  return {
    registry,
    observers: {
      requests: createRequestMetrics(registers),
      store: createStoreMetrics(registers),
      tunnelRequests: createTunnelRequestMetrics(registers),
      steps: createStepMetrics(registers),
      observeIngest: createIngestMetrics(registers, clock),
      onAgentReject: createRejectionMetrics(registers),
      onEdgeReject: createLimitMetrics(registers),
    },
    addServer: (server) => createConnectionMetrics(registers, server),
    addMetrics: (metrics) => addModuleMetrics(registers, metrics),
  }
}
