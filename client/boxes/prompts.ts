// Prompts for the coding agents of a box, and the events of their runs.
import type { PromptEvent, PromptRequest, Run } from '../generated/types.ts'
import type { CallOptions } from '../http/calls.ts'
import { createInvalidError, toLostError } from '../http/errors.ts'
import { createEventParser, toStreamError } from '../http/events.ts'
import { resumeEvents } from '../http/resume.ts'
import type { Context } from './context.ts'
import { readToEnd } from './read-to-end.ts'
import { requireField } from './require-field.ts'

export type EventsOptions = Pick<CallOptions, 'signal'> & {
  /** `seq` of the last event that is known. Default: 0, all events. */
  after?: number
}

const parseEvent = createEventParser(['prompt', 'done', 'error'])

/** A prompt that a coding agent has got, or that waits for its turn. */
export class PromptRun {
  readonly id: string
  readonly boxId: string
  readonly conversationId: string
  readonly #context: Context

  constructor(
    context: Context,
    boxId: string,
    { id, conversationId }: { id: string; conversationId: string },
  ) {
    this.#context = context
    this.boxId = boxId
    this.id = id
    this.conversationId = conversationId
  }

  /** Yields the events until the run has ended, also over lost connections. Returns the run; null: the prompt was removed from the queue. */
  async *events({
    after = 0,
    signal,
  }: EventsOptions = {}): AsyncGenerator<PromptEvent, Run | null, undefined> {
    const { calls, outageMs, idleMs } = this.#context
    const path = `/v1/box/${encodeURIComponent(this.boxId)}/prompts/${encodeURIComponent(this.id)}/events`
    let position = after
    const events = resumeEvents({
      signal,
      outageMs,
      idleMs,
      open: () =>
        calls.open(
          'GET',
          path,
          { query: { after: position, follow: true }, isResumed: true },
          { headers: { accept: 'text/event-stream' }, ...(signal !== undefined && { signal }) },
        ),
      parse: parseEvent,
      classify({ name, fields }) {
        if (name === 'error') return toStreamError(fields)
        // Events that were read before are sent again by a box whose stream fails at the next one.
        return name === 'prompt' && Number(fields.seq) <= position ? 'alive' : 'data'
      },
    })
    for await (const { name, fields } of events) {
      if (name === 'done') return (fields.run ?? null) as Run | null
      if (!Number.isSafeInteger(fields.seq)) throw createInvalidError('an event without its position')
      if (Number(fields.seq) <= position) continue
      position = Number(fields.seq)
      yield fields as unknown as PromptEvent
    }
    throw toLostError()
  }

  /** Resolves with the run when it has ended; null: the prompt was removed from the queue. */
  wait(options: Pick<CallOptions, 'signal'> = {}): Promise<Run | null> {
    return readToEnd(this.events(options))
  }

  /** Stops the run, or removes the prompt from the queue. */
  interrupt(options?: CallOptions) {
    return this.#context.routes.prompts.interrupt(this.boxId, this.id, options)
  }
}

export class Prompts {
  readonly #context: Context
  readonly #boxId: string

  constructor(context: Context, boxId: string) {
    this.#context = context
    this.#boxId = boxId
  }

  /** Sends a prompt, or with `queue` adds it to the queue. Wakes the box. */
  async start(request: PromptRequest, options?: CallOptions): Promise<PromptRun> {
    const response = await this.#context.routes.prompts.start(this.#boxId, request, options)
    if ('run' in response) return new PromptRun(this.#context, this.#boxId, response.run)
    const { id } = requireField(response, 'queued')
    return new PromptRun(this.#context, this.#boxId, { id, conversationId: response.conversationId })
  }

  /** A run of which the id is known. */
  get(id: string, conversationId: string): PromptRun {
    return new PromptRun(this.#context, this.#boxId, { id, conversationId })
  }

  /** The newest runs, and the queue. */
  list(options?: CallOptions) {
    return this.#context.routes.prompts.list(this.#boxId, {}, options)
  }

  listConversations(options?: CallOptions) {
    return this.#context.routes.prompts.listConversations(this.#boxId, options)
  }
}
