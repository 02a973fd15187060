// GET /exec/{processId}/stream (spec §4.14): the output of a detached process as server-sent events.
import type { Readable } from 'node:stream'
import { z } from 'zod'
import {
  formatEventId,
  type Offsets,
  parseEventId,
  type StreamQuery,
  streamQuerySchema,
} from '../../shared/api/processes.ts'
import { ApiError } from '../../shared/errors.ts'
import { DIAL_BACK_HEADER } from '../../shared/protocol.ts'
import { type Route, route } from '../http/route.ts'
import type { Streams } from '../tunnel/types.ts'
import { ACQUIRE_ERRORS, type AcquiredBox, acquireBox } from './acquire-box.ts'
import { readAgentResponse, throwAgentError } from './agent-response.ts'
import type { EdgeContext } from './context.ts'
import { withDeadline } from './deadline.ts'
import { forwardStream } from './forward-stream.ts'
import { processParams } from './processes.ts'

/** The agent responds immediately, whatever the process does. */
const OPEN_TIMEOUT_MS = 30_000

const HEADERS = {
  'content-type': 'text/event-stream',
  'cache-control': 'no-store',
  // Disables response buffering in nginx.
  'x-accel-buffering': 'no',
}

/** The header overrides the query: a browser reconnects to the same URL with Last-Event-ID. */
function startOffsets({ stdoutOffset = 0, stderrOffset = 0 }: StreamQuery, lastEventId: string): Offsets {
  return lastEventId === '' ? { stdout: stdoutOffset, stderr: stderrOffset } : parseEventId(lastEventId)
}

/**
 * Requests the stream and waits for the agent's dial-back connection.
 * @returns the messages of the connection
 * @throws ApiError the agent's error response, or box_unreachable
 */
async function openStream(
  streams: Streams,
  { box, tunnel, signal }: AcquiredBox,
  path: string,
  from: Offsets,
): Promise<Readable> {
  const pending = streams.expect(box.id)
  try {
    return await withDeadline(OPEN_TIMEOUT_MS, signal, async (signal) => {
      const headers = { 'last-event-id': formatEventId(from), [DIAL_BACK_HEADER]: pending.id }
      const response = await tunnel.request({ method: 'GET', path, headers, signal })
      if (response.status !== 200) return throwAgentError(response)
      response.body.resume()
      signal.addEventListener('abort', pending.discard, { once: true })
      const messages = await pending.connection
      signal.throwIfAborted()
      signal.removeEventListener('abort', pending.discard)
      return messages
    })
  } catch (error) {
    pending.discard()
    throw error
  }
}

/** Throws the agent's error response when the process does not exist. */
async function checkProcess({ responseParser }: EdgeContext, { tunnel, signal }: AcquiredBox, id: string) {
  await withDeadline(OPEN_TIMEOUT_MS, signal, async (signal) => {
    const response = await tunnel.request({ method: 'GET', path: `/exec/${id}?tail=0`, signal })
    await readAgentResponse(responseParser, response, 'exec.status')
  })
}

export function streamRoutes(context: EdgeContext): Route[] {
  const { closing } = context
  return [
    route({
      method: 'GET',
      path: '/exec/:processId/stream',
      summary: 'Stream the output of a detached process as server-sent events; resume with Last-Event-ID',
      request: { params: processParams, query: streamQuerySchema },
      requestHeaders: z.object({
        'Last-Event-ID': z
          .string()
          .regex(/^\d{1,15}:\d{1,15}$/)
          .optional()
          .meta({ description: 'the id of the last received event; overrides the offsets of the query' }),
      }),
      isEventStream: true,
      responses: { 200: null },
      errors: [...ACQUIRE_ERRORS, 'invalid_request'],
      async handler(input) {
        const { params, query, request, reply } = input
        const from = startOffsets(query, String(request.headers['last-event-id'] ?? ''))
        if (closing.aborted) throw new ApiError('control_plane_unavailable')
        const { processId } = params
        if (request.method === 'HEAD') {
          await checkProcess(context, await acquireBox(context, input), processId)
          return reply.headers(HEADERS).send()
        }
        const acquired = await acquireBox(context, input, { isStream: true })
        const { encoding = 'utf8', streams = 'both' } = query
        const path = `/exec/${processId}/stream?${new URLSearchParams({ encoding, streams })}`
        const messages = await openStream(context.streams, acquired, path, from)
        reply.hijack()
        reply.raw.writeHead(200, HEADERS)
        reply.raw.flushHeaders()
        await forwardStream(messages, reply.raw, { processId, from, encoding, closing })
        return reply
      },
    }),
  ]
}
