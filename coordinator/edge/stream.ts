// GET /exec/{processId}/stream (spec §4.14): the output of a detached process as server-sent events.
import { z } from 'zod'
import { type Offsets, type StreamQuery, streamQuerySchema } from '../../shared/api/processes.ts'
import { ApiError } from '../../shared/errors.ts'
import { formatEventId, parseEventId } from '../../shared/event-id.ts'
import { byKey } from '../http/access.ts'
import { EVENT_STREAM_HEADERS } from '../http/event-writer.ts'
import { type Route, route } from '../http/route.ts'
import { ACQUIRE_ERRORS, acquireBox } from './acquire-box.ts'
import type { EdgeContext } from './context.ts'
import { forwardStream } from './forward-stream.ts'
import { openDialBack } from './open-dial-back.ts'
import { processParams } from './processes.ts'
import { requestAgent } from './request-agent.ts'

/** The header overrides the query: a browser reconnects to the same URL with Last-Event-ID. */
function startOffsets({ stdoutOffset = 0, stderrOffset = 0 }: StreamQuery, lastEventId: string): Offsets {
  return lastEventId === '' ? { stdout: stdoutOffset, stderr: stderrOffset } : parseEventId(lastEventId)
}

export function streamRoutes(context: EdgeContext): Route[] {
  const { closing } = context
  return [
    route({
      id: 'processes.followOutput',
      method: 'GET',
      path: '/exec/:processId/stream',
      access: byKey('boxes', 'read', { acceptsTickets: true }),
      summary: 'Stream the output of a detached process as server-sent events; resume with Last-Event-ID',
      description:
        'Events: `attached` first, then `stdout` and `stderr` with `data`, `offset` and `nextOffset`, `heartbeat`, and at the end `exit`, `reconnect` or `error`. With `since` or `timestamps`, `attached` has `hasTimes`: whether the times of the requested streams are known. They are unknown for processes that were started by an earlier version. With `timestamps=1`, `stdout` and `stderr` have `at`, an RFC 3339 time that is exact to 100 ms, or null for output that is older than the 65536 stored times. When a connection is resumed, send `since` and `timestamps` again.',
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
          // Throws the agent's error response when the process does not exist.
          await requestAgent(context, await acquireBox(context, input), {
            method: 'GET',
            path: `/exec/${processId}?tail=0`,
            type: 'exec.status',
          })
          return reply.headers(EVENT_STREAM_HEADERS).send()
        }
        const acquired = await acquireBox(context, input, { kind: 'stream' })
        const { encoding = 'utf8', streams = 'both', since, timestamps = false } = query
        const agentQuery = new URLSearchParams({
          encoding,
          streams,
          ...(since !== undefined && { since }),
          // Agents of earlier versions know no other form.
          ...(timestamps && { timestamps: 'true' }),
        })
        const path = `/exec/${processId}/stream?${agentQuery}`
        const headers = { 'last-event-id': formatEventId(from) }
        const messages = await openDialBack(context.streams, acquired, { path, headers })
        reply.hijack()
        reply.raw.writeHead(200, EVENT_STREAM_HEADERS)
        reply.raw.flushHeaders()
        const hasTimes = timestamps || since !== undefined
        const { signal } = acquired
        const options = { processId, from, encoding, timestamps, hasTimes, closing, signal }
        await forwardStream(messages, reply.raw, options)
        return reply
      },
    }),
  ]
}
