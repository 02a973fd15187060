// The responses of agents to requests about prompts: schemas, bounds, and what the coordinator checks and streams.
import { z } from 'zod'
import {
  conversationListSchema,
  type PromptEvents,
  promptEventsSchema,
  promptInterruptedSchema,
  promptListSchema,
  promptPollSchema,
  promptQueuedSchema,
  promptStartedSchema,
  promptStatusSchema,
  promptsInterruptedSchema,
} from '../../shared/api/prompts.ts'
import { LIMITS, MAX_PROMPT_EVENT_BYTES } from '../../shared/limits.ts'
import type { Bounds, PageNumbers, PromptDetails, StreamPage } from './response-bounds.ts'

const KiB = 1024
/** JSON may need a six-byte escape for each character. */
const ESCAPED = 6
/** The fields of a run: a preview of the prompt, a working directory, an error of a few KiB, and short ones. */
const RUN_BYTES = ESCAPED * (LIMITS.promptPreviewChars + 16 * KiB)
const RUN_TOKENS = 64
const QUEUED_BYTES = ESCAPED * LIMITS.promptPreviewChars + KiB
const MAX_QUEUED = 1000
const MAX_POLLED_RUNS = 256

const RUN = { maxBytes: 4 * RUN_BYTES, maxTokens: 4 * RUN_TOKENS }
const PAGE_BYTES = LIMITS.promptEventsPageBytes + MAX_PROMPT_EVENT_BYTES
/** `raw` and `tool.input` are any JSON, of which each token has at least one byte. The heap of the worker suffices. */
const PAGE_TOKENS = PAGE_BYTES

const define = <S extends z.ZodType>(
  bounds: Omit<Bounds, 'schema' | 'describe'> & {
    schema: S
    describe?: (data: z.output<S>) => PromptDetails
  },
) => bounds as unknown as Bounds

type Page = Pick<PromptEvents, 'run' | 'events' | 'next' | 'finished'>

function isOrdered({ events, next }: Page): boolean {
  let last = 0
  for (const { seq } of events) {
    if (seq <= last) return false
    last = seq
  }
  return next >= last
}

const ORDER_RULE = 'must have events in ascending order, and must not have next before the last one'
const END_RULE = 'must not be finished while the run is in progress'
const hasEnded = ({ run, finished }: Page): boolean => !finished || (run !== null && run.status !== 'running')

const eventsSchema = promptEventsSchema.refine(isOrdered, ORDER_RULE).refine(hasEnded, END_RULE)
const pollSchema = promptPollSchema
  .refine(({ runs }) => runs.every(isOrdered), ORDER_RULE)
  .refine(({ runs }) => runs.every(hasEnded), END_RULE)
  .refine(
    ({ runs }) => new Set(runs.map(({ run }) => run.id)).size === runs.length,
    'must have each run once',
  )

const numbersOf = ({ events, next }: Page): PageNumbers => ({
  count: events.length,
  first: events[0]?.seq ?? null,
  next,
})

/** @param fields are added to each event */
const toStreamPage = (page: Page, fields: object = {}): StreamPage => ({
  ...numbersOf(page),
  run: page.run,
  events: page.events.map((event) => ({ seq: event.seq, json: JSON.stringify({ ...event, ...fields }) })),
  finished: page.finished,
})

export const PROMPT_RESPONSES = {
  /** The response to POST /prompts. */
  'prompt.submitted': define({
    ...RUN,
    schema: z.discriminatedUnion('type', [promptStartedSchema, promptQueuedSchema]),
    describe: (data) => {
      const { id, conversationId } = data.type === 'prompt.started' ? data.run : data.queued
      return { runId: id, conversationId }
    },
  }),
  'prompt.list': define({
    schema: promptListSchema,
    maxBytes: (LIMITS.listedPrompts + 1) * RUN_BYTES + MAX_QUEUED * QUEUED_BYTES,
    maxTokens: (LIMITS.listedPrompts + 1) * RUN_TOKENS + MAX_QUEUED * 32,
  }),
  'prompt.conversations': define({
    schema: conversationListSchema,
    maxBytes: (LIMITS.listedPrompts + 1) * RUN_BYTES,
    maxTokens: (LIMITS.listedPrompts + 1) * RUN_TOKENS,
  }),
  'prompt.status': define({
    schema: promptStatusSchema,
    maxBytes: ESCAPED * (LIMITS.promptBytes + LIMITS.promptStderrBytes) + RUN.maxBytes,
    maxTokens: RUN.maxTokens,
    describe: ({ run }) => ({ runId: run.id }),
  }),
  'prompt.events': define({
    schema: eventsSchema,
    maxBytes: PAGE_BYTES + RUN.maxBytes,
    maxTokens: PAGE_TOKENS,
    describe: (data) => ({ runId: data.run?.id, page: numbersOf(data) }),
  }),
  /** The response prompt.events, for a stream of events. */
  'prompt.stream': define({
    schema: eventsSchema,
    maxBytes: PAGE_BYTES + RUN.maxBytes,
    maxTokens: PAGE_TOKENS,
    hasJson: false,
    describe: (data) => ({
      runId: data.run?.id,
      batch: { pages: [toStreamPage(data)], missing: [], sequence: 0, active: 0 },
    }),
  }),
  'prompt.poll': define({
    schema: pollSchema,
    maxBytes: PAGE_BYTES + MAX_POLLED_RUNS * RUN_BYTES,
    maxTokens: PAGE_TOKENS,
    hasJson: false,
    describe: ({ runs, missing, sequence, active }) => ({
      batch: {
        pages: runs.map((page) =>
          toStreamPage(page, { runId: page.run.id, conversationId: page.run.conversationId }),
        ),
        missing,
        sequence,
        active,
      },
    }),
  }),
  'prompt.interrupted': define({
    schema: promptInterruptedSchema,
    maxBytes: 4 * KiB,
    maxTokens: RUN_TOKENS,
    describe: ({ id }) => ({ runId: id }),
  }),
  'prompts.interrupted': define({
    schema: promptsInterruptedSchema,
    maxBytes: 256 * KiB,
    maxTokens: 8 * KiB,
  }),
}
