// The route of process snapshots (spec §4.3).
import { z } from 'zod'
import { boxIdParamSchema } from '../../../shared/api/boxes.ts'
import { procsAtQuerySchema, procsAtSchema } from '../../../shared/api/process-snapshots.ts'
import { byKey } from '../../http/access.ts'
import { type Route, route } from '../../http/route.ts'
import type { ProcsAtService } from './service.ts'

export function processSnapshotRoutes({ procsAt }: { procsAt: ProcsAtService }): Route[] {
  return [
    route({
      id: 'boxes.getProcessesAt',
      method: 'GET',
      path: '/boxes/:id/procs-at',
      atOwnerOf: 'id',
      access: byKey('boxes', 'read'),
      summary: 'Get the processes and listening ports of a box at a moment',
      description:
        'Returns the snapshot nearest to t, at most five minutes before or after it; else 404. A running box takes a snapshot every minute, and they are stored for 30 days. Works while the box is suspended.',
      request: { params: z.object({ id: boxIdParamSchema }), query: procsAtQuerySchema },
      responses: { 200: procsAtSchema },
      handler: ({ actor, params, query }) => procsAt.get(actor, params.id, query.t),
    }),
  ]
}
