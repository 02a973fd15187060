// Types of the responses of agents: bounds, and what the coordinator reads from a response besides its JSON.
import type { z } from 'zod'
import type { Run } from '../../shared/api/prompts.ts'

/** The numbers of a page of events. */
export type PageNumbers = {
  count: number
  /** The first seq; null: the page has no events. */
  first: number | null
  next: number
}

/** Events of one run, ready to be streamed. */
export type StreamPage = PageNumbers & {
  /** null: the prompt is in the queue. */
  run: Run | null
  /** `json` is the data of the event `prompt`. */
  events: { seq: number; json: string }[]
  finished: boolean
}

export type PromptDetails = {
  runId?: string | undefined
  conversationId?: string | undefined
  /** Set for prompt.events. */
  page?: PageNumbers
  /** Set for prompt.stream and prompt.poll. */
  batch?: { pages: StreamPage[]; missing: string[]; sequence: number; active: number }
}

export type Bounds = {
  schema: z.ZodType
  maxBytes: number
  maxTokens: number
  /** Whether the response is forwarded as JSON. Default: true. */
  hasJson?: boolean
  /** Further fields of the parsed response. */
  describe?: (data: never) => PromptDetails
}
