// GET /exec/{processId}/stream: the output of a detached process as it comes (spec §4.14).
import type { Readable } from 'node:stream'
import type { FastifyBaseLogger, FastifyInstance } from 'fastify'
import { type Offsets, parseEventId, streamQuery } from '../../../shared/api/processes.ts'
import { ApiError } from '../../../shared/errors.ts'
import { TRANSFER_HEADER } from '../../../shared/protocol.ts'
import type { StreamDialer } from '../../tunnel/stream-dialer.ts'
import { findProcess } from '../detached/routes.ts'
import type { DetachedProcesses, StreamName } from '../detached/types.ts'
import type { Encoding } from './event.ts'
import { eventStream } from './event-stream.ts'
import { produceEvents } from './produce-events.ts'

export type StreamDeps = {
  processes: DetachedProcesses
  log: FastifyBaseLogger
  dialer: StreamDialer | undefined
}

type Wanted = { offsets: Offsets; streams: StreamName[]; encoding: Encoding }

/**
 * When the coordinator offers a connection of its own (TRANSFER_HEADER), the answer is empty and repeats the header, and
 * the events go there: an event passes through less of either program than a tunnel is made of, and a reader who stalls
 * holds up nobody else. They throw ApiError not_found and invalid_request; the app's error handler serialises it.
 */
export function streamRoutes(app: FastifyInstance, { processes, log, dialer }: StreamDeps): void {
  // A stream does not end by itself: one that is open would keep the app from closing.
  const open = new Set<Readable>()
  app.addHook('preClose', (done) => {
    for (const stream of open) stream.destroy()
    done()
  })

  app.get<{ Params: { processId: string } }>(
    '/exec/:processId/stream',
    { exposeHeadRoute: false },
    (request, reply) => {
      const { processId } = request.params
      const options = {
        process: findProcess(processes, processId),
        ...parseWanted(request.query, request.headers['last-event-id']),
        onError: (error: unknown) => log.error({ err: error, processId }, 'a stream broke off'),
      }
      const id = request.headers[TRANSFER_HEADER]
      if (typeof id === 'string' && dialer !== undefined) {
        // That it breaks off is how a reader leaves.
        dialer
          .bring(id, (sink) => produceEvents(options, sink))
          .catch((err: unknown) => log.debug({ err, processId }, 'the reader of a stream is gone'))
        return reply.header(TRANSFER_HEADER, id).send('')
      }
      const stream = eventStream(options)
      open.add(stream)
      stream.once('close', () => open.delete(stream))
      reply.raw.once('close', () => stream.destroy())
      return reply.type('text/event-stream').send(stream)
    },
  )
}

function parseWanted(values: unknown, lastId: string | string[] | undefined): Wanted {
  const query = streamQuery.safeParse(values)
  if (!query.success) {
    const [issue] = query.error.issues
    throw new ApiError('invalid_request', `${issue?.path.join('.')}: ${issue?.message}`)
  }
  const { stdoutOffset = 0, stderrOffset = 0, streams = 'both', encoding = 'utf8' } = query.data
  return {
    offsets:
      lastId === undefined ? { stdout: stdoutOffset, stderr: stderrOffset } : parseEventId(String(lastId)),
    streams: streams === 'stdout' || streams === 'stderr' ? [streams] : ['stdout', 'stderr'],
    encoding,
  }
}
