// Routes of prompts (spec §4.16). All of them respond with 200; the coordinator streams events and chooses the status.
import type { FastifyInstance, FastifyReply } from 'fastify'
import {
  agentEnvironmentSchema,
  agentEventsQuerySchema,
  agentPromptRequestSchema,
  conversationQuerySchema,
  PROMPT_ERROR_CODES,
  promptPollRequestSchema,
} from '../../shared/api/prompts.ts'
import { LIMITS } from '../../shared/limits.ts'
import { assertEnvironment } from '../exec/environment.ts'
import { validateRequest } from '../validate-request.ts'
import type { ActivityTracker } from '../vitals/activity-tracker.ts'
import type { Prompts, ProviderDetector } from './types.ts'

export type PromptRoutesDeps = {
  prompts: Prompts
  detector: Pick<ProviderDetector, 'setBoxEnvironment'>
  activity: Pick<ActivityTracker, 'touch'>
  /** When it aborts, new prompts are refused. */
  stopping: AbortSignal
}

type Params = { Params: { runId: string } }

/** Following a run is not activity: the run itself is. */
export function promptRoutes(app: FastifyInstance, deps: PromptRoutesDeps): void {
  const { prompts, detector, activity, stopping } = deps
  const readConversation = (query: unknown): string | undefined =>
    validateRequest(conversationQuerySchema, query, { root: 'query' }).conversation

  app.post('/prompts', async (request, reply) => {
    // The stream is reset, as if the tunnel had closed already: the coordinator may repeat the request on the next tunnel.
    if (stopping.aborted) return reply.hijack().raw.destroy()
    activity.touch()
    const body = validateRequest(agentPromptRequestSchema, request.body, { codes: PROMPT_ERROR_CODES })
    assertEnvironment(body.boxEnv)
    return prompts.submit(body)
  })

  app.get('/prompts', async (request) => prompts.list(readConversation(request.query)))
  app.get('/prompts/conversations', async () => prompts.listConversations())
  app.get<Params>('/prompts/:runId', async (request) => prompts.readStatus(request.params.runId))

  app.get<Params>('/prompts/:runId/events', async (request, reply) => {
    const query = validateRequest(agentEventsQuerySchema, request.query, { root: 'query' })
    const { after = 0, limit = LIMITS.promptEventsPage.default, waitMs = 0 } = query
    return prompts.readEvents(request.params.runId, {
      after,
      limit,
      waitMs,
      signal: abortOnDisconnect(reply),
    })
  })
  app.post('/prompts/poll', async (request, reply) =>
    prompts.poll(validateRequest(promptPollRequestSchema, request.body), abortOnDisconnect(reply)),
  )

  app.post<Params>('/prompts/:runId/interrupt', async (request) => {
    activity.touch()
    return prompts.interrupt(request.params.runId)
  })
  app.put('/environment', async (request, reply) => {
    const { env } = validateRequest(agentEnvironmentSchema, request.body)
    assertEnvironment(env)
    detector.setBoxEnvironment(env)
    return reply.status(204).send()
  })

  app.post('/prompts/interrupt', async (request) => {
    activity.touch()
    return prompts.interruptAll(readConversation(request.query))
  })
}

/** Before the response, 'close' means that the client disconnected or reset the stream. */
function abortOnDisconnect(reply: FastifyReply): AbortSignal {
  const controller = new AbortController()
  reply.raw.once('close', () => controller.abort())
  return controller.signal
}
