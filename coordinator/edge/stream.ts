// GET /exec/{processId}/stream (spec §4.14): what a detached process prints, as server-sent events.
import type { Readable } from 'node:stream'
import {
  eventId,
  type Offsets,
  parseEventId,
  type StreamQuery,
  streamQuery,
} from '../../shared/api/processes.ts'
import { ApiError } from '../../shared/errors.ts'
import { LIMITS } from '../../shared/limits.ts'
import { TRANSFER_HEADER } from '../../shared/protocol.ts'
import { type Route, route } from '../http/route.ts'
import type { Streams } from '../tunnel/types.ts'
import { throwRefusal } from './box-answer.ts'
import type { EdgeContext } from './context.ts'
import { within } from './deadline.ts'
import { eventWriter } from './event-writer.ts'
import { forwardEvents } from './forward-events.ts'
import { processParams } from './processes.ts'
import { VISIT_ERRORS, type Visit, visit } from './visit.ts'

/** A box answers with its head at once, whatever the process does. */
const HEAD_MS = 30_000

const HEADERS = {
  'content-type': 'text/event-stream',
  'cache-control': 'no-store',
  // Or a proxy in front would keep events until it has enough of them.
  'x-accel-buffering': 'no',
}

/** Where the client stands. The header wins: a browser sends it when it comes back to the same address. */
function startOffsets({ stdoutOffset = 0, stderrOffset = 0 }: StreamQuery, lastEventId: string): Offsets {
  return lastEventId === '' ? { stdout: stdoutOffset, stderr: stderrOffset } : parseEventId(lastEventId)
}

/**
 * The box's events: on a connection that its agent dials for them, or in its answer where the agent knows only that.
 * Rejects with what the box refused them with, and with box_unreachable.
 */
async function openEvents(
  streams: Streams,
  { box, tunnel, signal }: Visit,
  path: string,
  from: Offsets,
): Promise<Readable> {
  const expected = streams.expect(box.id)
  try {
    return await within(HEAD_MS, signal, async (signal) => {
      const headers = { 'last-event-id': eventId(from), [TRANSFER_HEADER]: expected.id }
      const response = await tunnel.request({ method: 'GET', path, headers, signal })
      if (response.status !== 200) return throwRefusal(response)
      if (response.headers[TRANSFER_HEADER] !== expected.id) return response.body
      response.body.resume()
      signal.addEventListener('abort', expected.release, { once: true })
      const events = await expected.dialed
      if (!signal.aborted) return events
      events.destroy()
      throw signal.reason
    })
  } finally {
    expected.release()
  }
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
        const from = startOffsets(query, String(request.headers['last-event-id'] ?? ''))
        if (closing.aborted) throw new ApiError('control_plane_unavailable')
        const { processId } = params
        const visited = await visit(context, input, { stream: true })
        const { encoding = 'utf8', streams = 'both' } = query
        const path = `/exec/${processId}/stream?${new URLSearchParams({ encoding, streams })}`
        const events = await openEvents(context.streams, visited, path, from)
        reply.hijack()
        reply.raw.writeHead(200, HEADERS)
        reply.raw.flushHeaders()
        forwardEvents(events, eventWriter(reply.raw), {
          processId,
          from,
          closing,
          lifeMs: LIMITS.streamReconnectMs,
        })
        return reply
      },
    }),
  ]
}
