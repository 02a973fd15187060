// Reads the events of a run over several connections, each event once.
import { type ServerEvent, toStreamError } from '../../client/http/events.ts'
import { resumeEvents } from '../../client/http/resume.ts'
import type { PromptEvent, Run } from '../../shared/api/prompts.ts'
import {
  checkFields,
  type FieldValidators,
  isOffset,
  isString,
  isStringOrNull,
  parseObject,
} from '../connection/server-data.ts'
import { type FollowOptions, followStream } from '../follow/follow-stream.ts'
import { checkRun, isRecord } from './check-run.ts'

type StreamEvent =
  | { name: 'prompt'; data: PromptEvent }
  | { name: 'done'; data: { run: Run | null } }
  | { name: 'error'; data: { code: string; message: string } }

export type RunStreamOptions = FollowOptions & {
  runId: string
  /** The next event is read after the promise resolves. */
  onEvent(event: PromptEvent): Promise<void>
  /** The box has discarded `count` events before the next one. */
  onMissing(count: number): void
}

/**
 * Resolves with the run when it has ended and all events were passed on; null: the prompt was removed from the queue. Throws
 * as followStream does.
 */
export async function readRunStream({
  runId,
  onEvent,
  onMissing,
  ...options
}: RunStreamOptions): Promise<Run | null> {
  const route = `/prompts/${encodeURIComponent(runId)}/events`
  const { edge, signal } = options
  let position = 0
  const events = followStream(route, options, (resuming) =>
    resumeEvents<StreamEvent>({
      ...resuming,
      open() {
        const headers: Record<string, string> = position === 0 ? {} : { 'last-event-id': String(position) }
        return edge.openStream(route, { follow: '1' }, { signal, headers })
      },
      parse: parseEvent,
      classify: (event) => (event.name === 'error' ? toStreamError(event.data) : 'data'),
    }),
  )
  for await (const event of events) {
    if (event.name === 'done') return event.data.run
    // A connection may repeat events that were read before.
    if (event.name !== 'prompt' || event.data.seq <= position) continue
    const missing = event.data.seq - position - 1
    // The box reports the bytes that it has discarded with a notice.
    if (missing > 0 && event.data.type !== 'notice') onMissing(missing)
    position = event.data.seq
    await onEvent(event.data)
  }
  return null
}

const isTool = (value: unknown): boolean =>
  value === null || (isRecord(value) && isString((value as Record<string, unknown>).name))

const FIELD_VALIDATORS: Record<string, FieldValidators> = {
  prompt: { seq: isOffset, type: isString, text: isStringOrNull, tool: isTool },
  done: { run: (value) => value === null || isRecord(value) },
  error: { code: isString, message: isString },
}

function parseEvent({ event: name = '', data: json }: ServerEvent): StreamEvent | null {
  const validators = Object.hasOwn(FIELD_VALIDATORS, name) ? FIELD_VALIDATORS[name] : undefined
  if (validators === undefined) return null
  const data = parseObject(json, 'an event')
  checkFields(`the event ${name}`, data, validators)
  if (name === 'done' && data.run !== null) checkRun(data.run)
  return { name, data } as unknown as StreamEvent
}
