// Metrics of the connections to agents and of the requests that the coordinator sends to them.
import { Counter, Histogram, type Registry } from 'prom-client'
import type { TunnelRequestObserver } from '../../../agents/tunnel/types.ts'
import { getTunnelRoute } from '../labels.ts'

const BUCKETS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1, 10, 60, 600]

export function createTunnelRequestMetrics(registers: Registry[]): TunnelRequestObserver {
  const duration = new Histogram({
    name: 'boxwood_tunnel_request_duration_seconds',
    help: 'Time until an agent has sent the headers of its response, by the first segment of the path. Outcome failed: no response.',
    labelNames: ['method', 'route', 'outcome'],
    buckets: BUCKETS,
    registers,
  })
  return async (request, send) => {
    const startedAt = performance.now()
    let outcome = 'failed'
    try {
      const response = await send()
      outcome = 'response'
      return response
    } finally {
      const labels = { method: request.method, route: getTunnelRoute(request), outcome }
      duration.observe(labels, (performance.now() - startedAt) / 1000)
    }
  }
}

export function createRejectionMetrics(registers: Registry[]): (code: string) => void {
  const rejections = new Counter({
    name: 'boxwood_agent_rejections_total',
    help: 'Connections of agents that were rejected, by error code.',
    labelNames: ['code'],
    registers,
  })
  return (code) => rejections.inc({ code })
}
