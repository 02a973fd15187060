// GET /processes: the processes of a running box, measured now. The spec does not have this route.
import { liveProcessesQuerySchema, liveProcessesSchema } from '../../shared/api/live-processes.ts'
import { byKey } from '../http/access.ts'
import { type Route, route } from '../http/route.ts'
import { ACQUIRE_ERRORS, boxParams } from './acquire-box.ts'
import type { EdgeContext } from './context.ts'
import { forwardRequest } from './request-agent.ts'

export function liveProcessRoutes(context: EdgeContext): Route[] {
  return [
    route({
      id: 'processes.listLive',
      method: 'GET',
      path: '/processes',
      access: byKey('boxes', 'read', { acceptsTickets: true }),
      summary: 'List the processes of a box with their CPU and memory usage',
      description:
        'Usage is measured between requests; the first request takes half a second. Requests within a second get the same ' +
        'measurement. With processId, the usage of one command. For an earlier moment, use procs-at of the control API.',
      request: { params: boxParams, query: liveProcessesQuerySchema },
      responses: { 200: liveProcessesSchema },
      errors: [...ACQUIRE_ERRORS, 'invalid_request'],
      handler(input) {
        const { processId } = input.query
        const path = `/processes${processId === undefined ? '' : `?processId=${processId}`}`
        return forwardRequest(context, input, { method: 'GET', path, type: 'process.list' })
      },
    }),
  ]
}
