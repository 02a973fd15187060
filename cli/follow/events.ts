// Parses the server-sent events of a process stream (spec §4.14) and checks their fields.
import type { IncomingMessage } from 'node:http'
import { createParser, type EventSourceMessage } from 'eventsource-parser'
import type { StreamEvents } from '../../shared/api/processes.ts'
import {
  checkFields,
  type FieldValidators,
  invalidDataError,
  isIntegerOrNull,
  isOffset,
  isString,
  isStringOrNull,
  parseObject,
} from '../server-data.ts'

export type StreamName = 'stdout' | 'stderr'
export type StreamEvent = {
  [N in keyof StreamEvents]: { name: N; data: StreamEvents[N] }
}[keyof StreamEvents]

/** More than three times the largest event, which has STREAM_EVENT_BYTES of shared/api/processes.ts. */
const MAX_EVENT_CHARS = 1024 * 1024

/**
 * Yields the events of `response` until the response ends. Ignores a partial event at the end. Reads one event at a
 * time, so that a slow consumer applies backpressure.
 * @throws CliError for an invalid event; the connection's error when the connection is lost
 */
export async function* readEvents(response: IncomingMessage): AsyncGenerator<StreamEvent, void, undefined> {
  let messages: EventSourceMessage[] = []
  let isTooLarge = false
  const parser = createParser({
    maxBufferSize: MAX_EVENT_CHARS,
    onEvent: (message) => void messages.push(message),
    onError: (error) => {
      isTooLarge ||= error.type === 'max-buffer-size-exceeded'
    },
  })
  // Decodes characters that are split between two chunks.
  response.setEncoding('utf8')
  for await (const text of response) {
    parser.feed(text)
    const complete = messages
    messages = []
    for (const message of complete) {
      const event = parseEvent(message)
      if (event !== null) yield event
    }
    if (isTooLarge) throw invalidDataError('an event that is too large')
  }
}

/** Missing unless it was requested, and from an older coordinator. */
const isTime = (value: unknown): boolean =>
  value === undefined || value === null || (typeof value === 'string' && /^[\dTZ:.+-]{1,40}$/.test(value))

const OUTPUT_VALIDATORS: FieldValidators = {
  data: isString,
  offset: isOffset,
  nextOffset: isOffset,
  at: isTime,
}

/** For each event, the fields that `box logs` uses. */
const FIELD_VALIDATORS: Record<keyof StreamEvents, FieldValidators> = {
  attached: { stdoutOffset: isOffset, stderrOffset: isOffset },
  stdout: OUTPUT_VALIDATORS,
  stderr: OUTPUT_VALIDATORS,
  heartbeat: {},
  reconnect: {},
  exit: {
    status: isString,
    exitCode: isIntegerOrNull,
    signal: isStringOrNull,
    stdoutOffset: isOffset,
    stderrOffset: isOffset,
  },
  error: { code: isString, message: isString },
}

/** Returns null for an unknown event: a newer coordinator may send additional events. */
function parseEvent({ event: name = '', data: json }: EventSourceMessage): StreamEvent | null {
  if (!Object.hasOwn(FIELD_VALIDATORS, name)) return null
  const data = parseObject(json, 'an event')
  checkFields(`the event ${name}`, data, FIELD_VALIDATORS[name as keyof StreamEvents])
  return { name, data } as unknown as StreamEvent
}
