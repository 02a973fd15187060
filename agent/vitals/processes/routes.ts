// GET /processes: the processes of the box now, or those that one command has started.
import type { FastifyInstance } from 'fastify'
import { liveProcessesQuerySchema } from '../../../shared/api/live-processes.ts'
import { validateRequest } from '../../validate-request.ts'
import type { LiveProcessReader } from './live-processes.ts'

export function liveProcessRoutes(app: FastifyInstance, reader: LiveProcessReader): void {
  app.get('/processes', { exposeHeadRoute: false }, (request) => {
    const { processId } = validateRequest(liveProcessesQuerySchema, request.query, { root: 'query' })
    return reader.read(processId)
  })
}
