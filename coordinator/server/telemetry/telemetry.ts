// Starts metrics and traces where the configuration requests them. Modules that are not used are not loaded.
import type { Server } from 'node:http'
import type { Logger } from 'pino'
import type { Clock } from '../../../shared/clock.ts'
import type { CleanupStack } from '../../base/cleanup-stack.ts'
import { withTimeout } from '../../base/timeout.ts'
import { listen } from '../../http/listen.ts'
import type { Metric } from '../../http/module.ts'
import type { PublicRoute } from '../../http/public-routes.ts'
import type { Config } from '../config.ts'
import { combineObservers } from './combine-observers.ts'
import type { Observers } from './observers.ts'

export type Telemetry = {
  readonly observers: Observers
  /** GET /metrics on the main listener. */
  readonly publicRoutes: readonly PublicRoute[]
  /** The origin of the listener for metrics; null: there is none. */
  readonly metricsUrl: string | null
  /** Call it before the first connection. */
  addServer(server: Server): void
  /** Adds the metrics of the modules. */
  addMetrics(metrics: readonly Metric[]): void
}

type Dependencies = { clock: Clock; cleanup: CleanupStack; log: Pick<Logger, 'info' | 'warn' | 'error'> }

/** A receiver that does not respond must not delay the stop for longer. */
const LAST_SPANS_MS = 1_000

/** All of these connections are without a credential, so half of this number may be open. A Prometheus server needs few. */
const MAX_METRICS_CONNECTIONS = 64

/** Throws StartError when the address for metrics cannot be used, or when the package for traces is missing. */
export async function startTelemetry(config: Config, dependencies: Dependencies): Promise<Telemetry> {
  const spans = config.traces ? await startTraces(dependencies) : undefined
  const metrics = await startMetrics(config, dependencies)
  if (metrics === undefined)
    return {
      observers: spans ?? {},
      publicRoutes: [],
      metricsUrl: null,
      addServer: () => undefined,
      addMetrics: () => undefined,
    }
  const { observers } = metrics
  return { ...metrics, observers: spans ? combineObservers(observers, spans) : observers }
}

async function startTraces({ cleanup, log }: Dependencies) {
  const [{ startSdk }, { createSpanObservers }] = await Promise.all([
    import('./tracing/start-sdk.ts'),
    import('./tracing/spans.ts'),
  ])
  const stopSdk = await startSdk(process.env)
  cleanup.add('stop the traces', () =>
    // The receiver is not part of Boxwood: its failure is no error of the coordinator.
    withTimeout(stopSdk(), LAST_SPANS_MS, `the receiver did not respond within ${LAST_SPANS_MS} ms`).catch(
      ({ message }: Error) => log.warn({ reason: message }, 'the last spans were not sent'),
    ),
  )
  return createSpanObservers()
}

async function startMetrics(config: Config, { clock, cleanup, log }: Dependencies) {
  const { metricsListen, metricsToken } = config
  if (metricsListen === null && metricsToken === null) return undefined
  const [{ createPrometheusMetrics }, { createMetricsRoute, serveMetrics }] = await Promise.all([
    import('./prometheus/prometheus-metrics.ts'),
    import('./prometheus/endpoint.ts'),
  ])
  const { registry, ...metrics } = createPrometheusMetrics(clock)
  let metricsUrl: string | null = null
  if (metricsListen !== null) {
    const limits = { ...config.limits, maxConnections: MAX_METRICS_CONNECTIONS }
    const listening = await listen(metricsListen, limits, 'BOXWOOD_METRICS_LISTEN')
    serveMetrics(listening, { registry, token: metricsToken, log })
    metricsUrl = listening.url
    log.info({ url: metricsUrl }, 'serving metrics')
    cleanup.add('close the listener for metrics', () => {
      listening.server.close()
      listening.connections.destroyAll()
    })
  }
  const publicRoutes = metricsToken === null ? [] : [createMetricsRoute(registry, metricsToken)]
  return { ...metrics, publicRoutes, metricsUrl }
}
