// The metrics of boxes over time (spec §4.3).
import type { BoxFinder } from '../../http/find-box.ts'
import type { Module, ModuleBase } from '../../http/module.ts'
import { withTag } from '../../http/route.ts'
import { createMetrics, type Metrics } from './metrics.ts'
import { pruneMetrics } from './retention.ts'
import { metricsRoutes } from './routes.ts'

export function metricsModule({ db, clock, log, boxFinder }: ModuleBase & { boxFinder: BoxFinder }) {
  const boxMetrics: Metrics = createMetrics({ db, clock, log, boxes: boxFinder })
  return {
    services: { boxMetrics },
    routes: withTag('Boxes', metricsRoutes({ metrics: boxMetrics.service })),
    schedules: { pruners: { metrics: (signal: AbortSignal) => pruneMetrics({ db, clock }, signal) } },
    deleteOfBox: boxMetrics.deleteOfBox,
  } satisfies Module
}
