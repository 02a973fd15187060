// GET /exec/{processId}/stream: what a detached process prints, as server-sent events (spec §4.14).
import type { FastifyBaseLogger, FastifyInstance } from 'fastify'
import { parseEventId, streamQuery } from '../../../shared/api/processes.ts'
import { ApiError } from '../../../shared/errors.ts'
import { findProcess } from '../detached/routes.ts'
import type { DetachedProcesses } from '../detached/types.ts'
import { eventStream } from './event-stream.ts'

const BOTH = ['stdout', 'stderr'] as const

export function streamRoutes(
  app: FastifyInstance,
  { processes, log }: { processes: DetachedProcesses; log: FastifyBaseLogger },
): void {
  app.get<{ Params: { processId: string } }>(
    '/exec/:processId/stream',
    { exposeHeadRoute: false },
    (request, reply) => {
      const process = findProcess(processes, request.params.processId)
      const query = streamQuery.safeParse(request.query)
      if (!query.success) {
        const [issue] = query.error.issues
        throw new ApiError('invalid_request', `${issue?.path.join('.')}: ${issue?.message}`)
      }
      const { stdoutOffset = 0, stderrOffset = 0, streams = 'both', encoding = 'utf8' } = query.data
      const lastId = request.headers['last-event-id']
      const body = eventStream({
        process,
        offsets:
          typeof lastId === 'string' ? parseEventId(lastId) : { stdout: stdoutOffset, stderr: stderrOffset },
        streams: BOTH.filter((name) => streams === 'both' || streams.split(',').includes(name)),
        encoding,
        onError: (error) => log.error({ err: error, processId: process.processId }, 'a stream broke off'),
      })
      return reply.type('text/event-stream').send(body)
    },
  )
}
