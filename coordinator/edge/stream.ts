// GET /exec/{processId}/stream (spec §4.14): what a detached process prints, as server-sent events.
import { parseEventId, type StreamQuery, streamQuery } from '../../shared/api/processes.ts'
import { ApiError } from '../../shared/errors.ts'
import { LIMITS } from '../../shared/limits.ts'
import { type Route, route } from '../http/route.ts'
import { throwRefusal } from './box-answer.ts'
import type { EdgeContext } from './context.ts'
import { within } from './deadline.ts'
import { forwardEvents } from './forward-events.ts'
import { processParams } from './processes.ts'
import { VISIT_ERRORS, visit } from './visit.ts'

/** A box answers with its head at once, whatever the process does. */
const HEAD_MS = 30_000

const HEADERS = {
  'content-type': 'text/event-stream',
  'cache-control': 'no-store',
  // Or a proxy in front would keep events until it has enough of them.
  'x-accel-buffering': 'no',
}

/** Where the client stands. The header wins: a browser sends it when it comes back to the same address. */
function startId({ stdoutOffset = 0, stderrOffset = 0 }: StreamQuery, lastEventId: string): string {
  if (lastEventId === '') return `${stdoutOffset}:${stderrOffset}`
  const { stdout, stderr } = parseEventId(lastEventId)
  return `${stdout}:${stderr}`
}

export function streamRoutes(context: EdgeContext): Route[] {
  const { closing } = context
  return [
    route({
      method: 'GET',
      path: '/exec/:processId/stream',
      summary: 'Follow what a detached process prints, as server-sent events; reopens by Last-Event-ID',
      request: { params: processParams, query: streamQuery },
      events: true,
      answers: { 200: null },
      errors: [...VISIT_ERRORS, 'invalid_request'],
      async handle(input) {
        const { params, query, request, reply } = input
        const from = startId(query, String(request.headers['last-event-id'] ?? ''))
        if (closing.aborted) throw new ApiError('control_plane_unavailable')
        const { processId } = params
        const { tunnel, signal } = await visit(context, input, { stream: true })
        const { encoding = 'utf8', streams = 'both' } = query
        const events = await within(HEAD_MS, signal, async (signal) => {
          const response = await tunnel.request({
            method: 'GET',
            path: `/exec/${processId}/stream?${new URLSearchParams({ encoding, streams })}`,
            headers: { 'last-event-id': from },
            signal,
          })
          if (response.status !== 200) return throwRefusal(response)
          return response.body
        })
        reply.hijack()
        reply.raw.writeHead(200, HEADERS)
        reply.raw.flushHeaders()
        forwardEvents(events, reply.raw, { processId, from, closing, lifeMs: LIMITS.streamReconnectMs })
        return reply
      },
    }),
  ]
}
