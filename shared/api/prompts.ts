// Schemas of prompts (spec §2.13, §4.16): runs of coding-agent CLIs, their events, conversations and the queue.
import * as z from 'zod'
import {
  CONVERSATION_ID_PATTERN,
  PROVIDERS,
  REASONING_EFFORTS,
  RUN_ID_PATTERN,
  RUN_STATUSES,
} from '../field-values.ts'
import { LIMITS } from '../limits.ts'
import {
  boundedArray,
  exitCodeSchema,
  integerBetween,
  NO_NUL_RULE,
  noNul,
  pidSchema,
  queryFlag,
  queryIntegerBetween,
  queryOffset,
  reportedIntegerSchema,
  timestampSchema,
} from './common.ts'

export type ProviderName = (typeof PROVIDERS)[number]
export const PROVIDER_READINESS = ['ready', 'not_signed_in', 'not_installed'] as const
export type ProviderReadiness = (typeof PROVIDER_READINESS)[number]
export type ReasoningEffort = (typeof REASONING_EFFORTS)[number]
export type RunStatus = (typeof RUN_STATUSES)[number]

const runIdSchema = z.string().regex(RUN_ID_PATTERN)
const conversationIdSchema = z.string().regex(CONVERSATION_ID_PATTERN)

/**
 * Covers the names of all four CLIs, ARNs, and suffixes such as [1m]. A leading hyphen would be an option of the CLI, and
 * the prefix of a backend alone is no name.
 */
const MODEL_PATTERN = /^[A-Za-z0-9@](?:[\w.:/@+[\]~-]{0,254}[\w.:@+[\]~-])?$/
const providerSchema = z.enum(PROVIDERS)
const effortSchema = z.enum(REASONING_EFFORTS, `must be one of ${REASONING_EFFORTS.join(', ')}`)

export const promptRequestSchema = z
  .object({
    provider: providerSchema.meta({ description: 'the coding agent' }),
    prompt: z
      .string()
      .refine((text) => text.trim() !== '', 'must not be blank')
      .meta({ description: 'at most 512 KiB as UTF-8, else 413 payload_too_large' }),
    model: z
      .string()
      .regex(MODEL_PATTERN, 'must be the name of a model, such as claude-sonnet-5-5')
      .optional()
      .meta({
        description:
          'a name that the coding agent knows. The prefixes amazon-bedrock/, openrouter/ and deepseek/ select a backend. Default: the model of the conversation, else the default of the coding agent',
      }),
    reasoningEffort: effortSchema.optional().meta({ description: 'default: that of the coding agent' }),
    cwd: z
      .string()
      .refine(noNul, NO_NUL_RULE)
      .refine((text) => !/[\r\n]/.test(text), 'must not contain a newline')
      .optional()
      .meta({
        description:
          'working directory of a new conversation, resolved under the home directory, the default. A conversation keeps its directory',
      }),
    new: z.boolean().optional().meta({
      description: 'start a new conversation, even while other runs are in progress',
    }),
    conversationId: z.string().optional().meta({
      description: 'continue this conversation. Excludes new and continue',
    }),
    continue: z.boolean().optional().meta({
      description:
        'continue the most recently active conversation of the provider that has a session. Excludes new and conversationId',
    }),
    queue: z.boolean().optional().meta({
      description:
        'wait instead of failing while the conversation has a run in progress, or the box has reached its limit of runs. Without new, conversationId and continue: follow the run of the same provider that is in progress',
    }),
    auto: z.boolean().optional().meta({
      description:
        'let the coding agent run all tools without asking for permission. Default false. pi always does: for pi, false is refused',
    }),
  })
  .meta({ id: 'PromptRequest' })
export type PromptRequest = z.infer<typeof promptRequestSchema>

/** Error codes by field of promptRequestSchema. Fields that are not listed: invalid_request. */
export const PROMPT_ERROR_CODES = { provider: 'invalid_provider', prompt: 'prompt_required' } as const

/** The request to the agent. The coordinator chooses the ids, so that a request whose response was lost can be repeated. */
export const agentPromptRequestSchema = promptRequestSchema.extend({
  runId: runIdSchema,
  /** The id of the conversation, if the prompt starts one. */
  newConversationId: conversationIdSchema,
  boxEnv: z.record(z.string(), z.string()).optional(),
})
export type AgentPromptRequest = z.infer<typeof agentPromptRequestSchema>

/** Text that a box reports. The agent truncates; the coordinator refuses what is longer. */
const MAX_TEXT = 64 * 1024
const modelSchema = z.string().max(256)
const sessionIdSchema = z.string().max(256)

export const runSchema = z
  .object({
    id: runIdSchema,
    conversationId: conversationIdSchema,
    provider: providerSchema,
    model: modelSchema
      .nullable()
      .meta({ description: 'as requested; null: the default of the coding agent' }),
    reasoningEffort: effortSchema.nullable(),
    auto: z.boolean(),
    status: z.enum(RUN_STATUSES).meta({
      description:
        'interrupted: by a request or a suspend. Otherwise the last final event decides, and without one the exit code',
    }),
    error: z
      .string()
      .max(MAX_TEXT)
      .nullable()
      .meta({ description: 'why the run failed or was interrupted; null while it runs and when it is done' }),
    exitCode: exitCodeSchema.nullable().meta({ description: 'null while it runs, and after a signal' }),
    pid: pidSchema.nullable(),
    cwd: z.string().max(MAX_TEXT).meta({ description: 'as given for the conversation; ~ by default' }),
    startedAt: timestampSchema,
    finishedAt: timestampSchema.nullable(),
    sessionId: sessionIdSchema.nullable().meta({
      description: 'the session of the coding agent; null until its output names it',
    }),
    resumedFrom: sessionIdSchema.nullable().meta({ description: 'the session that the run continues' }),
    parent: runIdSchema.nullable().meta({ description: 'the previous run of the conversation' }),
    eventCount: reportedIntegerSchema,
    prompt: z
      .string()
      .max(LIMITS.promptBytes)
      .meta({
        description: `the first ${LIMITS.promptPreviewChars} characters; GET /prompts/{runId} returns the whole prompt`,
      }),
  })
  .meta({ id: 'Run' })
export type Run = z.infer<typeof runSchema>

export const queuedPromptSchema = z
  .object({
    id: runIdSchema.meta({ description: 'the id of the run, once it has started' }),
    conversationId: conversationIdSchema,
    provider: providerSchema,
    model: modelSchema.nullable(),
    position: integerBetween(1, 1000).meta({ description: 'in the queue of the box' }),
    queuedAt: timestampSchema,
    prompt: z.string().max(LIMITS.promptPreviewChars),
  })
  .meta({ id: 'QueuedPrompt' })
export type QueuedPrompt = z.infer<typeof queuedPromptSchema>
const queueSchema = boundedArray(queuedPromptSchema, 1000)

export const promptStartedSchema = z
  .object({ ok: z.literal(true), type: z.literal('prompt.started'), run: runSchema })
  .meta({ id: 'PromptStarted' })
export type PromptStarted = z.infer<typeof promptStartedSchema>

export const promptQueuedSchema = z
  .object({
    ok: z.literal(true),
    type: z.literal('prompt.queued'),
    conversationId: conversationIdSchema,
    queued: queuedPromptSchema,
    active: runSchema.nullable().meta({ description: 'the run that the prompt waits for' }),
  })
  .meta({ id: 'PromptQueued' })
export type PromptQueued = z.infer<typeof promptQueuedSchema>

export const promptListSchema = z
  .object({
    ok: z.literal(true),
    type: z.literal('prompt.list'),
    runs: boundedArray(runSchema, LIMITS.listedPrompts).meta({ description: 'newest first' }),
    active: runSchema.nullable().meta({ description: 'the newest run in progress' }),
    queued: queueSchema.meta({ description: 'in the order in which they will start' }),
  })
  .meta({ id: 'PromptList' })
export type PromptList = z.infer<typeof promptListSchema>

export const conversationSchema = z
  .object({
    id: conversationIdSchema,
    provider: providerSchema,
    model: modelSchema.nullable(),
    cwd: z.string().max(MAX_TEXT),
    prompts: reportedIntegerSchema.meta({ description: 'runs, also those that are deleted' }),
    queued: reportedIntegerSchema.meta({ description: 'prompts in the queue' }),
    running: z.boolean(),
    lastRunId: runIdSchema.nullable(),
    lastStatus: z.enum(RUN_STATUSES).nullable(),
    sessionId: sessionIdSchema.nullable(),
    lastPrompt: z.string().max(LIMITS.promptPreviewChars),
    createdAt: timestampSchema,
    updatedAt: timestampSchema,
  })
  .meta({ id: 'Conversation' })
export type Conversation = z.infer<typeof conversationSchema>

export const conversationListSchema = z
  .object({
    ok: z.literal(true),
    type: z.literal('prompt.conversations'),
    conversations: boundedArray(conversationSchema, LIMITS.listedPrompts).meta({
      description: 'most recently active first',
    }),
    running: reportedIntegerSchema.meta({ description: 'runs in progress on the box' }),
    limit: reportedIntegerSchema.meta({ description: 'the most runs that may be in progress' }),
  })
  .meta({ id: 'ConversationList' })
export type ConversationList = z.infer<typeof conversationListSchema>

export const promptStatusSchema = z
  .object({
    ok: z.literal(true),
    type: z.literal('prompt.status'),
    run: runSchema,
    stderr: z.string().max(LIMITS.promptStderrBytes).meta({ description: 'the last 4 KiB, as UTF-8' }),
    stderrTruncated: z.boolean(),
    logPath: z.string().max(MAX_TEXT).meta({
      description: 'path of the file with the unchanged output of the coding agent, for GET /download',
    }),
  })
  .meta({ id: 'PromptStatus' })
export type PromptStatus = z.infer<typeof promptStatusSchema>

export const PROMPT_EVENT_TYPES = [
  'session',
  'text',
  'reasoning',
  'tool',
  'tool_result',
  'usage',
  'notice',
  'error',
  'done',
] as const
export type PromptEventType = (typeof PROMPT_EVENT_TYPES)[number]

/** What a coding agent prints or passes to a tool. */
const anyJsonSchema = z.unknown().meta({ type: ['object', 'array', 'string', 'number', 'boolean', 'null'] })

export const promptEventSchema = z
  .object({
    seq: reportedIntegerSchema.min(1).meta({ description: '1, 2, 3, … of the run' }),
    at: timestampSchema.meta({ description: 'when the coding agent wrote it, exact to 100 ms' }),
    type: z
      .string()
      .regex(/^[a-z_]{1,32}$/)
      .meta({ description: PROMPT_EVENT_TYPES.join(', ') }),
    text: z.string().nullable(),
    tool: z
      .object({ name: z.string().max(1024), input: anyJsonSchema })
      .nullable()
      .meta({
        description: 'set for tool and tool_result; input is null where the coding agent does not repeat it',
      }),
    raw: anyJsonSchema.meta({
      description:
        'the line of the coding agent, unchanged, on the first event of the line; null on its further events',
    }),
  })
  .meta({ id: 'PromptEvent' })
export type PromptEvent = z.infer<typeof promptEventSchema>

const pageFields = {
  run: runSchema,
  events: boundedArray(promptEventSchema, LIMITS.promptEventsPage.max),
  next: reportedIntegerSchema.meta({ description: 'pass as `after` to get the following page' }),
  finished: z.boolean().meta({ description: 'the run has ended, and no event follows the page' }),
}
export const promptEventsSchema = z
  .object({
    ok: z.literal(true),
    type: z.literal('prompt.events'),
    ...pageFields,
    run: runSchema.nullable().meta({ description: 'null: the prompt is in the queue' }),
  })
  .meta({ id: 'PromptEvents' })
export type PromptEvents = z.infer<typeof promptEventsSchema>

export const promptEventsQuerySchema = z.object({
  after: queryOffset().optional().meta({ description: 'seq of the last received event; default 0' }),
  limit: queryIntegerBetween(LIMITS.promptEventsPage.min, LIMITS.promptEventsPage.max)
    .optional()
    .meta({ description: `default ${LIMITS.promptEventsPage.default}. A page also stops at 1 MiB` }),
  follow: queryFlag().optional().meta({ description: '1: server-sent events' }),
})
export const conversationQuerySchema = z.object({
  conversation: z.string().optional().meta({ description: 'only runs of this conversation' }),
})

/** The longest time that the agent waits for an event. */
export const MAX_POLL_MS = 15_000
/** The agent's query of GET /prompts/{runId}/events. `waitMs`: when there is no event, wait for one. */
export const agentEventsQuerySchema = promptEventsQuerySchema
  .omit({ follow: true })
  .extend({ waitMs: queryIntegerBetween(0, MAX_POLL_MS).optional() })

/**
 * POST /prompts/poll of the agent: the next events of several runs. Responds as soon as there is an event, a run that is not
 * in `after`, or the end of a run, and after `waitMs` at the latest.
 */
export const promptPollRequestSchema = z.object({
  conversation: conversationIdSchema.optional(),
  /** Run id → seq of the last received event. The response also has the other runs in progress, from their first event on. */
  after: z.record(runIdSchema, reportedIntegerSchema),
  /**
   * `sequence` of the last response. The response also has the runs that have started since then, and ended. Absent, with an
   * empty `after` and without runs in progress: it has the newest run.
   */
  sequence: reportedIntegerSchema.optional(),
  waitMs: integerBetween(0, MAX_POLL_MS),
})
export type PromptPollRequest = z.infer<typeof promptPollRequestSchema>
export const promptPollSchema = z.object({
  ok: z.literal(true),
  type: z.literal('prompt.poll'),
  /** All runs together have at most one page of events. Runs without new events are omitted, except those that are not in `after`. */
  runs: boundedArray(z.object(pageFields), 256),
  /** Ids in `after` of runs that no longer exist, or are not in the conversation. */
  missing: boundedArray(runIdSchema, 256),
  /** The sequence number of the newest run. The client has received all runs up to it that it has requested. */
  sequence: reportedIntegerSchema,
  /** Runs in progress and queued prompts, of the conversation where one is given. */
  active: reportedIntegerSchema,
})
export type PromptPoll = z.infer<typeof promptPollSchema>

const interruptFields = {
  wasRunning: z.boolean(),
  signal: z.enum(['INT', 'TERM', 'KILL']).nullable().meta({
    id: 'SentSignal',
    description: 'the strongest signal that was needed; null when no process of the run was in progress',
  }),
}
export const promptInterruptedSchema = z
  .object({
    ok: z.literal(true),
    type: z.literal('prompt.interrupted'),
    id: runIdSchema,
    ...interruptFields,
    dequeued: z.boolean().meta({ description: 'the prompt was in the queue and has been removed' }),
  })
  .meta({ id: 'PromptInterrupted' })
export type PromptInterrupted = z.infer<typeof promptInterruptedSchema>

export const promptsInterruptedSchema = z
  .object({
    ok: z.literal(true),
    type: z.literal('prompt.interrupted'),
    id: runIdSchema.nullable().meta({ description: 'of the first run' }),
    ...interruptFields,
    interrupted: boundedArray(
      z.object({
        id: runIdSchema,
        conversationId: conversationIdSchema,
        signal: interruptFields.signal,
      }),
      256,
    ),
    dequeued: boundedArray(runIdSchema, 1000).meta({
      description: 'prompts that were removed from the queue',
    }),
  })
  .meta({ id: 'PromptsInterrupted' })
export type PromptsInterrupted = z.infer<typeof promptsInterruptedSchema>
