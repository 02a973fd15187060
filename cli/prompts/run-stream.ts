// Reads the events of a run over several connections, each event once.
import type { EventSourceMessage } from 'eventsource-parser'
import type { PromptEvent, Run } from '../../shared/api/prompts.ts'
import {
  checkFields,
  type FieldValidators,
  isOffset,
  isString,
  isStringOrNull,
  parseObject,
} from '../connection/server-data.ts'
import { parseErrorEvent } from '../follow/disconnect.ts'
import { type ResumableStreamOptions, readResumableStream } from '../follow/resumable-stream.ts'
import { readServerSentEvents } from '../follow/server-sent-events.ts'
import { checkRun, isRecord } from './check-run.ts'

type StreamEvent =
  /** The response has started, or a comment keeps the connection open. */
  | { name: 'connected' }
  | { name: 'alive' }
  | { name: 'prompt'; data: PromptEvent }
  | { name: 'done'; data: { run: Run | null } }
  | { name: 'error'; data: { code: string; message: string } }

export type RunStreamOptions = Omit<ResumableStreamOptions<StreamEvent>, 'getLastEventId' | 'onEvent'> & {
  runId: string
  /** The next event is read after the promise resolves. */
  onEvent(event: PromptEvent): Promise<void>
  /** The box has discarded `count` events before the next one. */
  onMissing(count: number): void
}

/** More than the largest event, which has MAX_PROMPT_EVENT_BYTES of shared/api/prompts.ts. */
const MAX_EVENT_CHARS = 4 * 1024 * 1024

/**
 * Resolves with the run when it has ended and all events were passed on; null: the prompt was removed from the queue. Throws
 * as readResumableStream does.
 */
export async function readRunStream({
  runId,
  onEvent,
  onMissing,
  ...options
}: RunStreamOptions): Promise<Run | null> {
  let position = 0
  let run: Run | null = null
  await readResumableStream<StreamEvent>(
    {
      route: `/prompts/${encodeURIComponent(runId)}/events`,
      query: { follow: '1' },
      async *readEvents(response) {
        yield { name: 'connected' }
        yield* readServerSentEvents<StreamEvent>(response, {
          maxChars: MAX_EVENT_CHARS,
          parse: parseEvent,
          comment: { name: 'alive' },
        })
      },
      classify(event) {
        if (event.name === 'error') return parseErrorEvent(event.data)
        return event.name === 'connected' ? 'connected' : 'data'
      },
    },
    {
      ...options,
      getLastEventId: () => (position === 0 ? null : String(position)),
      async onEvent(event) {
        if (event.name === 'done') run = event.data.run
        // A connection may repeat events that were read before.
        if (event.name === 'prompt' && event.data.seq > position) {
          const missing = event.data.seq - position - 1
          // The box reports the bytes that it has discarded with a notice.
          if (missing > 0 && event.data.type !== 'notice') onMissing(missing)
          position = event.data.seq
          await onEvent(event.data)
        }
        return event.name === 'done'
      },
    },
  )
  return run
}

const isTool = (value: unknown): boolean =>
  value === null || (isRecord(value) && isString((value as Record<string, unknown>).name))

const FIELD_VALIDATORS: Record<string, FieldValidators> = {
  prompt: { seq: isOffset, type: isString, text: isStringOrNull, tool: isTool },
  done: { run: (value) => value === null || isRecord(value) },
  error: { code: isString, message: isString },
}

function parseEvent({ event: name = '', data: json }: EventSourceMessage): StreamEvent | null {
  const validators = Object.hasOwn(FIELD_VALIDATORS, name) ? FIELD_VALIDATORS[name] : undefined
  if (validators === undefined) return null
  const data = parseObject(json, 'an event')
  checkFields(`the event ${name}`, data, validators)
  if (name === 'done' && data.run !== null) checkRun(data.run)
  return { name, data } as unknown as StreamEvent
}
