// GET /processes: the processes of the box now, or those that one command has started.
import type { FastifyInstance } from 'fastify'
import { liveProcessesQuerySchema } from '../../../shared/api/live-processes.ts'
import { addJsonRoute } from '../../requests/json-routes.ts'
import { validateRequest } from '../../validate-request.ts'
import type { LiveProcessReader } from './live-processes.ts'

export function liveProcessRoutes(app: FastifyInstance, reader: LiveProcessReader): void {
  addJsonRoute(app, 'GET', '/processes', ({ query }) => {
    const { processId } = validateRequest(liveProcessesQuerySchema, query, { root: 'query' })
    return reader.read(processId)
  })
}
