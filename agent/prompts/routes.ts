// Routes of prompts (spec §4.16). All of them respond with 200; the coordinator streams events and chooses the status.
import {
  agentEventsQuerySchema,
  agentPromptRequestSchema,
  conversationQuerySchema,
  PROMPT_ERROR_CODES,
  promptPollRequestSchema,
} from '../../shared/api/prompts.ts'
import { LIMITS } from '../../shared/limits.ts'
import type { ActivityTracker } from '../activity-tracker.ts'
import { assertEnvironment } from '../exec/environment.ts'
import { type JsonRouter, RequestResetError } from '../requests/json-routes.ts'
import { validateRequest } from '../validate-request.ts'
import type { Prompts } from './types.ts'

export type PromptRoutesDeps = {
  prompts: Prompts
  activity: Pick<ActivityTracker, 'touch'>
  /** When it aborts, new prompts are refused. */
  stopping: AbortSignal
}

/** Following a run is not activity: the run itself is. */
export function promptRoutes(router: JsonRouter, deps: PromptRoutesDeps): void {
  const { prompts, activity, stopping } = deps
  const readConversation = (query: unknown): string | undefined =>
    validateRequest(conversationQuerySchema, query, { root: 'query' }).conversation

  router.add('POST', '/prompts', (request) => {
    if (stopping.aborted) throw new RequestResetError()
    activity.touch()
    const body = validateRequest(agentPromptRequestSchema, request.body, { codes: PROMPT_ERROR_CODES })
    assertEnvironment(body.boxEnv)
    return prompts.submit(body)
  })

  router.add('GET', '/prompts', ({ query }) => prompts.list(readConversation(query)))
  router.add('GET', '/prompts/conversations', () => prompts.listConversations())
  router.add('GET', '/prompts/:runId', ({ params }) => prompts.readStatus(params.runId))

  router.add('GET', '/prompts/:runId/events', ({ params, query, signal }) => {
    const { after = 0, limit, waitMs = 0 } = validateRequest(agentEventsQuerySchema, query, { root: 'query' })
    const page = { after, limit: limit ?? LIMITS.promptEventsPage.default, waitMs, signal }
    return prompts.readEvents(params.runId, page)
  })
  router.add('POST', '/prompts/poll', ({ body, signal }) =>
    prompts.poll(validateRequest(promptPollRequestSchema, body), signal),
  )

  router.add('POST', '/prompts/:runId/interrupt', ({ params }) => {
    activity.touch()
    return prompts.interrupt(params.runId)
  })
  router.add('POST', '/prompts/interrupt', ({ query }) => {
    activity.touch()
    return prompts.interruptAll(readConversation(query))
  })
}
