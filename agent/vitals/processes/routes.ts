// GET /processes: the processes of the box now, or those that one command has started.
import { liveProcessesQuerySchema } from '../../../shared/api/live-processes.ts'
import type { JsonRouter } from '../../requests/json-routes.ts'
import { validateRequest } from '../../validate-request.ts'
import type { LiveProcessReader } from './live-processes.ts'

export function liveProcessRoutes(router: JsonRouter, reader: LiveProcessReader): void {
  router.add('GET', '/processes', ({ query }) => {
    const { processId } = validateRequest(liveProcessesQuerySchema, query, { root: 'query' })
    return reader.read(processId)
  })
}
