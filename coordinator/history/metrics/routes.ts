// The route of box metrics (spec §4.3).
import { z } from 'zod'
import { boxIdParamSchema } from '../../../shared/api/boxes.ts'
import { cpuQuerySchema, cpuSchema, metricsQuerySchema, metricsSchema } from '../../../shared/api/metrics.ts'
import { byKey } from '../../http/access.ts'
import { type Route, route } from '../../http/route.ts'
import type { MetricsService } from './service.ts'

export const metricsRoutes = ({ metrics }: { metrics: MetricsService }): Route[] => [
  route({
    id: 'boxes.getMetrics',
    method: 'GET',
    path: '/boxes/:id/metrics',
    atOwnerOf: 'id',
    access: byKey('boxes', 'read'),
    summary: 'Get CPU, memory, disk and network usage of a box over time',
    description:
      'Works while the box is suspended. The range is limited to the last 30 days. Spans of up to 6 hours have 30-second buckets, spans of up to 3 days 5-minute buckets, and longer ones 1-hour buckets.',
    request: { params: z.object({ id: boxIdParamSchema }), query: metricsQuerySchema },
    responses: { 200: metricsSchema },
    handler: ({ actor, params, query }) => metrics.get(actor, params.id, query),
  }),
  route({
    id: 'boxes.listCpu',
    method: 'GET',
    path: '/metrics/cpu',
    access: byKey('boxes', 'read'),
    summary: 'List the CPU of boxes',
    request: { query: cpuQuerySchema },
    responses: { 200: cpuSchema },
    handler: ({ actor, query }) => metrics.listCpu(actor, query.boxes),
  }),
]
