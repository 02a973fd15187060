// GET /prompts/{runId}/events and GET /prompts/events (spec §4.16): pages of events, and server-sent events.
import { z } from 'zod'
import { queryFlag } from '../../shared/api/common.ts'
import {
  conversationQuerySchema,
  promptEventsQuerySchema,
  promptEventsSchema,
} from '../../shared/api/prompts.ts'
import { ApiError } from '../../shared/errors.ts'
import { LIMITS } from '../../shared/limits.ts'
import { MAX_REPORTED_INTEGER } from '../../shared/report-limits.ts'
import { createAgentProtocolError } from '../agents/tunnel/agent-errors.ts'
import { byKey } from '../http/access.ts'
import {
  acceptsEventStream,
  EVENT_STREAM_HEADERS,
  type EventWriter,
  serveEvents,
} from '../http/event-writer.ts'
import { type Route, type RouteInput, type RouteSchemas, route } from '../http/route.ts'
import { ACQUIRE_ERRORS, acquireBox, boxParams } from './acquire-box.ts'
import type { EdgeContext } from './context.ts'
import { assertPage, createPageRequest, followRun, followRuns, readRunPage } from './follow-prompts.ts'
import { createAgentPoller } from './poll-agent.ts'
import {
  formatPosition,
  parseRunPosition,
  parseRunsPosition,
  RUN_POSITION_PATTERN,
  RUNS_POSITION_PATTERN,
  type RunsPosition,
} from './prompt-positions.ts'
import { formatConversation, runParams } from './prompts.ts'
import { requestAgent } from './request-agent.ts'

type StreamInput = Pick<RouteInput<RouteSchemas>, 'request' | 'reply'>

const getLastEventId = ({ request }: StreamInput) => String(request.headers['last-event-id'] ?? '')

const lastEventIdHeader = (pattern: RegExp) =>
  z.object({
    'Last-Event-ID': z
      .string()
      .regex(pattern)
      .optional()
      .meta({ description: 'the id of the last received event; overrides `after`' }),
  })

const STREAM_RULES =
  'A comment is sent after 15 s without an event. The stream holds a request slot until its end, and counts among the four streams of a key. The last event is `done`, or `error` with `code` and `message`; connect again with Last-Event-ID.'

export function promptStreamRoutes(context: EdgeContext): Route[] {
  const { closing } = context

  async function stream(
    { request, reply }: StreamInput,
    signal: AbortSignal,
    getPosition: () => string,
    produce: (writer: EventWriter) => Promise<string>,
  ) {
    reply.hijack()
    reply.raw.writeHead(200, EVENT_STREAM_HEADERS)
    reply.raw.flushHeaders()
    await serveEvents(reply.raw, { log: request.log, closing, signal, getPosition }, produce)
    return reply
  }

  return [
    route({
      id: 'prompts.followAll',
      method: 'GET',
      path: '/prompts/events',
      access: byKey('boxes', 'read', { acceptsTickets: true }),
      summary: 'Stream the events of all runs in progress, and of those that start meanwhile',
      description: `Server-sent events, with or without \`follow=1\`, until no run is in progress and the queue is empty. Without runs in progress: the newest run. Events: \`run\` with {run}, \`prompt\` with the event, \`runId\` and \`conversationId\`, \`run.done\` with {run, next}, \`done\`; and \`error\`, after which the stream continues if one run has been deleted. ${STREAM_RULES}`,
      request: {
        params: boxParams,
        query: conversationQuerySchema.extend({
          follow: queryFlag()
            .refine((follow) => follow, 'must be 1: the route always streams')
            .optional()
            .meta({ description: 'has no effect' }),
        }),
      },
      requestHeaders: lastEventIdHeader(RUNS_POSITION_PATTERN),
      isEventStream: true,
      responses: { 200: null },
      errors: ACQUIRE_ERRORS,
      async handler(input) {
        const { query, request, reply, actor } = input
        const { conversation } = query
        const path = `/prompts${formatConversation(conversation)}`
        const lastEventId = getLastEventId(input)
        const resumed = lastEventId === '' ? null : parseRunsPosition(lastEventId)
        if (closing.aborted) throw new ApiError('control_plane_unavailable')
        const isHead = request.method === 'HEAD'
        const acquired = await acquireBox(context, input, { kind: isHead ? 'request' : 'prompt-stream' })
        // Throws the agent's error response when the conversation does not exist.
        await requestAgent(context, acquired, {
          method: 'GET',
          path,
          type: 'prompt.list',
        })
        if (isHead) return reply.headers(EVENT_STREAM_HEADERS).send()
        const position: RunsPosition = resumed ?? { runs: new Map(), sequence: null }
        const poller = createAgentPoller(context, acquired, actor)
        return stream(
          input,
          acquired.signal,
          () => formatPosition(position),
          (writer) => followRuns(writer, poller, position, conversation),
        )
      },
    }),
    route({
      id: 'prompts.listEvents',
      method: 'GET',
      path: '/prompts/:runId/events',
      access: byKey('boxes', 'read', { acceptsTickets: true }),
      summary: 'Get a page of the events of a run, or stream them',
      description: `With \`follow=1\` or \`Accept: text/event-stream\`, server-sent events until the run has ended: \`prompt\` with the event, then \`done\` with {run, next}. \`follow=0\` overrides Accept, and \`limit\` has no effect on a stream. ${STREAM_RULES}`,
      request: { params: runParams, query: promptEventsQuerySchema },
      requestHeaders: lastEventIdHeader(RUN_POSITION_PATTERN),
      responses: { 200: promptEventsSchema },
      otherContentTypes: ['text/event-stream'],
      errors: ACQUIRE_ERRORS,
      async handler(input) {
        const { params, query, request, reply, actor } = input
        const { runId } = params
        const { limit = LIMITS.promptEventsPage.default, follow } = query
        const start = Math.min(query.after ?? 0, MAX_REPORTED_INTEGER)
        const follows = follow ?? acceptsEventStream(request.headers.accept)
        if (!follows) {
          const pageRequest = createPageRequest({ runId, after: start }, { limit, waitMs: 0 })
          const response = await requestAgent(context, await acquireBox(context, input), {
            ...pageRequest,
            type: 'prompt.events',
          })
          if (response.runId !== undefined && response.runId !== runId)
            throw createAgentProtocolError('The agent responded for a different run.')
          if (response.page) assertPage(response.page, start, limit)
          return reply.type('application/json; charset=utf-8').send(response.json)
        }
        const lastEventId = getLastEventId(input)
        const position = { runId, after: lastEventId === '' ? start : parseRunPosition(lastEventId) }
        if (closing.aborted) throw new ApiError('control_plane_unavailable')
        const isHead = request.method === 'HEAD'
        const acquired = await acquireBox(context, input, { kind: isHead ? 'request' : 'prompt-stream' })
        const firstLimit = isHead ? 1 : LIMITS.promptEventsPage.max
        // Throws the agent's error response when the run does not exist.
        const response = await requestAgent(
          context,
          acquired,
          createPageRequest(position, { limit: firstLimit, waitMs: 0 }),
        )
        if (isHead) return reply.headers(EVENT_STREAM_HEADERS).send()
        const first = readRunPage(response, position)
        const poller = createAgentPoller(context, acquired, actor)
        return stream(
          input,
          acquired.signal,
          () => String(position.after),
          (writer) => followRun(writer, poller, position, first),
        )
      },
    }),
  ]
}
