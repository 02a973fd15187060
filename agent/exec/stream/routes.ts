// GET /exec/{processId}/stream: what a detached process prints, as server-sent events (spec §4.14).
import { Readable } from 'node:stream'
import type { FastifyBaseLogger, FastifyInstance, FastifyRequest } from 'fastify'
import { EVENT_ID, type StreamQuery, streamQuery } from '../../../shared/api/processes.ts'
import { ApiError } from '../../../shared/errors.ts'
import { LIMITS } from '../../../shared/limits.ts'
import { findProcess } from '../detached/routes.ts'
import type { DetachedProcesses, StreamName } from '../detached/types.ts'
import type { Offsets } from './events.ts'
import { followProcess } from './follow.ts'

export type StreamDeps = {
  processes: DetachedProcesses
  log: FastifyBaseLogger
  /** As in FollowOptions; those of the spec unless told. */
  heartbeatMs?: number
  reconnectMs?: number
}

type Params = { Params: { processId: string } }

export function streamRoutes(app: FastifyInstance, deps: StreamDeps): void {
  const { processes, log } = deps
  const { heartbeatMs = LIMITS.streamHeartbeatMs, reconnectMs = LIMITS.streamReconnectMs } = deps

  app.get<Params>('/exec/:processId/stream', { exposeHeadRoute: false }, (request, reply) => {
    const process = findProcess(processes, request.params.processId)
    const start = parseStart(request)
    const gone = new AbortController()
    reply.raw.once('close', () => gone.abort())
    const events = followProcess(process, {
      ...start,
      heartbeatMs,
      reconnectMs,
      signal: gone.signal,
      onError: (error) => log.error({ err: error, processId: process.processId }, 'a stream broke off'),
    })
    // One piece ahead is enough: everything else stays in the logs until the reader has come to it.
    const body = Readable.from(events, { objectMode: false, highWaterMark: 1 })
    return reply.type('text/event-stream').send(body)
  })
}

/** Where a reader begins. @throws ApiError invalid_request */
export function parseStart({ query, headers }: Pick<FastifyRequest, 'query' | 'headers'>): {
  from: Offsets
  streams: StreamName[]
  encoding: NonNullable<StreamQuery['encoding']>
} {
  const parsed = streamQuery.safeParse(query)
  if (!parsed.success) {
    const [issue] = parsed.error.issues
    throw new ApiError('invalid_request', `${issue?.path.join('.')}: ${issue?.message}`)
  }
  const { stdoutOffset = 0, stderrOffset = 0, streams = 'both', encoding = 'utf8' } = parsed.data
  const lastId = headers['last-event-id']
  const resumed = typeof lastId === 'string' && lastId !== '' ? EVENT_ID.exec(lastId) : undefined
  if (resumed === null) throw new ApiError('invalid_request', 'Last-Event-ID is <stdout>:<stderr>, in bytes.')
  return {
    from: resumed
      ? { stdout: Number(resumed[1]), stderr: Number(resumed[2]) }
      : { stdout: stdoutOffset, stderr: stderrOffset },
    streams: (['stdout', 'stderr'] as const).filter(
      (name) => streams === 'both' || streams.split(',').includes(name),
    ),
    encoding,
  }
}
