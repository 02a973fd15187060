// Route GET /exec/{processId}/stream: sends the output of a detached process over a dial-back connection (spec §4.14).
import type { FastifyBaseLogger, FastifyInstance } from 'fastify'
import { streamQuerySchema } from '../../../shared/api/processes.ts'
import { parseEventId } from '../../../shared/event-id.ts'
import { DIAL_BACK_HEADER } from '../../../shared/protocol.ts'
import { readDialBackId } from '../../tunnel/dial-back-id.ts'
import type { StreamDialer } from '../../tunnel/stream-dialer.ts'
import { validateRequest } from '../../validate-request.ts'
import { findProcess } from '../detached/routes.ts'
import type { DetachedProcesses } from '../detached/types.ts'
import { type StreamOptions, streamFrames } from './frames.ts'

export type StreamDeps = {
  processes: DetachedProcesses
  log: FastifyBaseLogger
  streamDialer: StreamDialer
}

/**
 * The response is empty and repeats the id of DIAL_BACK_HEADER; the frames follow on that connection.
 * @throws ApiError not_found, invalid_request
 */
export function streamRoutes(app: FastifyInstance, { processes, log, streamDialer }: StreamDeps): void {
  app.get<{ Params: { processId: string } }>(
    '/exec/:processId/stream',
    { exposeHeadRoute: false },
    (request, reply) => {
      const { processId } = request.params
      const id = readDialBackId(request.headers)
      const options = {
        detachedProcess: findProcess(processes, processId),
        ...parseStreamRequest(request.query, request.headers['last-event-id']),
        onError: (err: unknown) => log.error({ err, processId }, 'failed to read process output'),
      }
      streamDialer
        .send(id, (signal) => streamFrames(options, signal))
        // A disconnect of the client has this effect too.
        .catch((err: unknown) => log.debug({ err, processId }, 'output stream closed early'))
      return reply.header(DIAL_BACK_HEADER, id).send('')
    },
  )
}

function parseStreamRequest(
  values: unknown,
  lastEventId: string | string[] | undefined,
): Pick<StreamOptions, 'offsets' | 'streams' | 'encoding' | 'since' | 'timestamps'> {
  const query = validateRequest(streamQuerySchema, values, { root: 'query' })
  const { stdoutOffset = 0, stderrOffset = 0, streams = 'both', encoding = 'utf8', since, timestamps } = query
  return {
    offsets:
      lastEventId === undefined
        ? { stdout: stdoutOffset, stderr: stderrOffset }
        : parseEventId(String(lastEventId)),
    streams: streams === 'stdout' || streams === 'stderr' ? [streams] : ['stdout', 'stderr'],
    encoding,
    since: since === undefined ? null : Date.parse(since),
    timestamps: timestamps ?? false,
  }
}
