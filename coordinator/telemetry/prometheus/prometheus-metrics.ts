// The coordinator's metrics for Prometheus: creates the registry and all metrics.
import type { Server } from 'node:http'
import { collectDefaultMetrics, Gauge, Registry } from 'prom-client'
import type { Clock } from '../../../shared/clock.ts'
import type { DiskReserve } from '../../db/disk-reserve.ts'
import type { EdgeLimiter } from '../../edge/limits.ts'
import type { Lifecycle } from '../../lifecycle/lifecycle.ts'
import type { Tunnels } from '../../tunnel/types.ts'
import { COORDINATOR_VERSION } from '../../version.ts'
import type { Observers } from '../observers.ts'
import { createRejectionMetrics, createTunnelMetrics, createTunnelRequestMetrics } from './agents.ts'
import { createBoxMetrics } from './boxes.ts'
import { createLimitMetrics, createSlotMetrics } from './edge.ts'
import { createConnectionMetrics, createRequestMetrics } from './http.ts'
import { createStepMetrics } from './lifecycle.ts'
import { createIngestMetrics } from './reports.ts'
import { createDiskMetrics, createStoreMetrics } from './store.ts'

/** Read when the metrics are read. */
export type MetricSources = {
  edge: { limiter: Pick<EdgeLimiter, 'acquiredCount'>; tunnels: Pick<Tunnels, 'on'> }
  lifecycle: Pick<Lifecycle, 'countBoxes'>
  diskReserve: Pick<DiskReserve, 'isReleased'>
}

export type PrometheusMetrics = {
  readonly registry: Registry
  readonly observers: Required<Observers>
  /** Adds the connections of the server. Call it before the first connection. */
  addServer(server: Server): void
  /** Adds the metrics that are read from the services. */
  addSources(sources: MetricSources): void
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
  }).set({ version: COORDINATOR_VERSION }, 1)
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
    addSources({ edge, lifecycle, diskReserve }) {
      createTunnelMetrics(registers, edge.tunnels)
      createSlotMetrics(registers, edge.limiter)
      createBoxMetrics(registers, lifecycle.countBoxes)
      createDiskMetrics(registers, diskReserve)
    },
  }
}
