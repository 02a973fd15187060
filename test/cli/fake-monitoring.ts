// Metrics, process snapshots and live processes of the boxes of a fake coordinator.
import { liveProcessesSchema } from '../../shared/api/live-processes.ts'
import {
  BOX_SERIES,
  FILE_SYSTEM_SERIES,
  INTERFACE_SERIES,
  type Metrics,
  metricsSchema,
} from '../../shared/api/metrics.ts'
import { procsAtSchema } from '../../shared/api/process-snapshots.ts'
import { ApiError } from '../../shared/errors.ts'
import { type FakeCoordinator, sendJson } from './fake-coordinator.ts'

/** The value of a series in a bucket. null: no sample. Series without a function are null everywhere. */
type Group = Record<string, (index: number) => number | null>

export type FakeMonitoring = {
  /** Responses, checked with the schemas when they are sent. null: not found. */
  metrics: unknown
  snapshot: unknown
  live: unknown
}

export function addFakeMonitoring(fake: FakeCoordinator): FakeMonitoring {
  const state: FakeMonitoring = { metrics: null, snapshot: null, live: null }
  const require = (value: unknown) => {
    if (value === null) throw new ApiError('not_found')
    return value
  }
  fake.addRoutes([
    [
      /^GET \/api\/v1\/boxes\/[^/]+\/metrics(\?.*)?$/,
      async (_, response) => sendJson(response, metricsSchema.parse(require(state.metrics))),
    ],
    [
      /^GET \/api\/v1\/boxes\/[^/]+\/procs-at\?t=.+$/,
      async (_, response) => sendJson(response, procsAtSchema.parse(require(state.snapshot))),
    ],
    [
      /^GET \/v1\/box\/[^/]+\/processes(\?.*)?$/,
      async (_, response) => {
        const live = require(state.live)
        liveProcessesSchema.parse(live)
        // Unchanged, with control characters that the coordinator replaces: the command does not trust it.
        sendJson(response, live)
      },
    ],
  ])
  return state
}

/** @param from ISO 8601, a multiple of `res` */
export function createMetrics(
  { from, res, count }: { from: string; res: 30 | 300 | 3600; count: number },
  { box, fs = {}, ifaces = {} }: { box: Group; fs?: Record<string, Group>; ifaces?: Record<string, Group> },
): Metrics {
  const start = Date.parse(from) / 1000
  const toSeries = (names: object, group: Group) =>
    Object.fromEntries(
      Object.keys(names).map((name) => {
        const avg = Array.from({ length: count }, (_, index) => group[name]?.(index) ?? null)
        return [name, { avg, max: avg.map((value) => value && value * 1.5) }]
      }),
    )
  return metricsSchema.parse({
    v: 1,
    res,
    from: new Date(start * 1000).toISOString(),
    to: new Date((start + count * res) * 1000).toISOString(),
    buckets: Array.from({ length: count }, (_, index) => start + index * res),
    series: toSeries(BOX_SERIES, box),
    fs: Object.entries(fs).map(([mount, group]) => ({ mount, ...toSeries(FILE_SYSTEM_SERIES, group) })),
    ifaces: Object.entries(ifaces).map(([name, group]) => ({ name, ...toSeries(INTERFACE_SERIES, group) })),
  })
}
