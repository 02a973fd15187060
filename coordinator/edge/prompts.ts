// Routes of prompts to coding agents (spec §4.16), without the streams of events. The coordinator stores nothing of them.
import { z } from 'zod'
import {
  conversationListSchema,
  conversationQuerySchema,
  PROMPT_ERROR_CODES,
  type PromptRequest,
  promptInterruptedSchema,
  promptListSchema,
  promptQueuedSchema,
  promptRequestSchema,
  promptStartedSchema,
  promptStatusSchema,
  promptsInterruptedSchema,
} from '../../shared/api/prompts.ts'
import { ApiError } from '../../shared/errors.ts'
import { CONVERSATION_ID_PATTERN, RUN_ID_PATTERN } from '../../shared/field-values.ts'
import { LIMITS } from '../../shared/limits.ts'
import { assertSupported } from '../../shared/prompt-combinations.ts'
import { getBoxVariables } from '../boxes/variables.ts'
import { byKey } from '../http/access.ts'
import { type Route, route } from '../http/route.ts'
import { ACQUIRE_ERRORS, acquireBox, boxParams, CWD_DENIED, INVALID_CWD, WAKE_ERRORS } from './acquire-box.ts'
import type { EdgeContext } from './context.ts'
import { forwardRequest } from './request-agent.ts'
import { startPrompt } from './start-prompt.ts'

/** A malformed id is answered with 404, without a request to the agent. */
export const runParams = boxParams.extend({
  runId: z
    .string()
    .regex(RUN_ID_PATTERN)
    .meta({ param: { id: 'runId' } }),
})

/** Covers the end of the coding agent, SIGTERM, the grace period, SIGKILL and the scans of the process table. */
const INTERRUPT_TIMEOUT_MS = 90_000

/** @returns the query for the agent. Throws not_found for a malformed id. */
export function formatConversation(conversation: string | undefined): string {
  if (conversation === undefined) return ''
  assertConversationId(conversation)
  return `?conversation=${conversation}`
}

function assertConversationId(id: string): void {
  if (!CONVERSATION_ID_PATTERN.test(id)) throw new ApiError('not_found', 'This conversation does not exist.')
}

/** Throws for what the agent need not decide, so that a suspended box is not woken for it. */
function assertPrompt(request: PromptRequest): void {
  const { prompt, new: isNew, conversationId, continue: continues } = request
  const targets = [isNew && 'new', conversationId !== undefined && 'conversationId', continues && 'continue']
  const [first, second] = targets.filter((name) => typeof name === 'string')
  if (second !== undefined)
    throw new ApiError('invalid_request', `${first} and ${second} must not be given together`)
  if (Buffer.byteLength(prompt) > LIMITS.promptBytes)
    throw new ApiError('payload_too_large', `prompt must be at most ${LIMITS.promptBytes} bytes as UTF-8`)
  if (conversationId !== undefined) assertConversationId(conversationId)
  assertSupported(request)
}

const read = byKey('boxes', 'read', { acceptsTickets: true })
const run = byKey('boxes', 'run', { acceptsTickets: true })

export function promptRoutes(context: EdgeContext): Route[] {
  return [
    route({
      id: 'prompts.start',
      method: 'POST',
      path: '/prompts',
      access: run,
      summary: 'Send a prompt to a coding agent on the box, or add it to the queue',
      description:
        'Wakes a suspended box and waits for it. The run continues when the client disconnects. Follow it with GET /prompts/{runId}/events. Without `new`, `conversationId` and `continue`, the prompt starts a new conversation; with `queue`, it follows the run of the same provider that is in progress.',
      request: { params: boxParams, body: promptRequestSchema },
      fieldErrorCodes: PROMPT_ERROR_CODES,
      bodyLimit: LIMITS.promptBodyBytes,
      responses: { 202: z.discriminatedUnion('type', [promptStartedSchema, promptQueuedSchema]) },
      errors: [
        ...WAKE_ERRORS,
        ...['invalid_request', 'permission_denied', 'payload_too_large', 'prompt_in_progress'],
        ...['provider_not_signed_in', 'provider_not_installed', 'no_session_to_continue'],
        ...['prompt_limit_reached', 'provider_mismatch'],
      ] as const,
      errorDescriptions: {
        invalid_path: INVALID_CWD,
        not_found:
          'There is no such box, conversation or directory cwd, or this credential may not access the box.',
        payload_too_large: `prompt must be at most ${LIMITS.promptBytes} bytes as UTF-8`,
        permission_denied: CWD_DENIED,
      },
      async handler(input) {
        const { body, reply } = input
        assertPrompt(body)
        const acquired = await acquireBox(context, input, { wakesBox: true })
        const boxEnv = getBoxVariables(acquired.box)
        const response = await startPrompt(context, acquired, body, boxEnv)
        await context.recordPrompt(acquired.box)
        return reply.code(202).type('application/json; charset=utf-8').send(response)
      },
    }),
    route({
      id: 'prompts.list',
      method: 'GET',
      path: '/prompts',
      access: read,
      summary: 'List the newest runs, and the queue',
      request: { params: boxParams, query: conversationQuerySchema },
      responses: { 200: promptListSchema },
      errors: ACQUIRE_ERRORS,
      async handler(input) {
        const path = `/prompts${formatConversation(input.query.conversation)}`
        return forwardRequest(context, input, { method: 'GET', path, type: 'prompt.list' })
      },
    }),
    route({
      id: 'prompts.listConversations',
      method: 'GET',
      path: '/prompts/conversations',
      access: read,
      summary: 'List the conversations, most recently active first',
      request: { params: boxParams },
      responses: { 200: conversationListSchema },
      errors: ACQUIRE_ERRORS,
      handler: (input) =>
        forwardRequest(context, input, {
          method: 'GET',
          path: '/prompts/conversations',
          type: 'prompt.conversations',
        }),
    }),
    route({
      id: 'prompts.interruptAll',
      method: 'POST',
      path: '/prompts/interrupt',
      access: run,
      summary: 'Interrupt all runs, and empty the queue',
      description:
        'With `conversation`, only those of one conversation. Responds when the runs have ended. Prompts in the queue are removed first.',
      request: { params: boxParams, query: conversationQuerySchema },
      responses: { 200: promptsInterruptedSchema },
      errors: ACQUIRE_ERRORS,
      async handler(input) {
        return forwardRequest(context, input, {
          method: 'POST',
          path: `/prompts/interrupt${formatConversation(input.query.conversation)}`,
          type: 'prompts.interrupted',
          timeoutMs: INTERRUPT_TIMEOUT_MS,
        })
      },
    }),
    route({
      id: 'prompts.get',
      method: 'GET',
      path: '/prompts/:runId',
      access: read,
      summary: 'Get a run with the whole prompt and the end of its stderr',
      request: { params: runParams },
      responses: { 200: promptStatusSchema },
      errors: ACQUIRE_ERRORS,
      handler(input) {
        const { runId } = input.params
        const path = `/prompts/${runId}`
        return forwardRequest(context, input, { method: 'GET', path, type: 'prompt.status', runId })
      },
    }),
    route({
      id: 'prompts.interrupt',
      method: 'POST',
      path: '/prompts/:runId/interrupt',
      access: run,
      summary: 'Interrupt a run, or remove a prompt from the queue',
      description: 'Responds when the run has ended. A run that has ended is not changed.',
      request: { params: runParams },
      responses: { 200: promptInterruptedSchema },
      errors: ACQUIRE_ERRORS,
      handler(input) {
        const { runId } = input.params
        return forwardRequest(context, input, {
          method: 'POST',
          path: `/prompts/${runId}/interrupt`,
          type: 'prompt.interrupted',
          runId,
          timeoutMs: INTERRUPT_TIMEOUT_MS,
        })
      },
    }),
  ]
}
