// The events of a process's stream (spec §4.14), out of an answer that may be cut anywhere.
import type { IncomingMessage } from 'node:http'
import { createParser, type EventSourceMessage } from 'eventsource-parser'
import type { StreamEvents } from '../../shared/api/processes.ts'
import { EXIT, Failure } from '../exit-codes.ts'

export type StreamName = 'stdout' | 'stderr'
export type StreamEvent = {
  [N in keyof StreamEvents]: { name: N; data: StreamEvents[N] }
}[keyof StreamEvents]

/** Characters: more than twice the largest event there is (shared/api/processes.ts, which would bring zod). */
const MAX_EVENT_CHARS = 1024 * 1024

/**
 * Ends, or throws the connection's error, where the answer does: half an event is none. One event is read at a time,
 * so that a reader that is slow makes the sender wait.
 * @throws Failure when what comes is not such a stream
 */
export async function* readEvents(response: IncomingMessage): AsyncGenerator<StreamEvent, void, undefined> {
  let arrived: EventSourceMessage[] = []
  let tooLarge = false
  const parser = createParser({
    maxBufferSize: MAX_EVENT_CHARS,
    onEvent: (event) => void arrived.push(event),
    onError: (error) => {
      tooLarge ||= error.type === 'max-buffer-size-exceeded'
    },
  })
  // Or a character that two chunks share would be lost.
  response.setEncoding('utf8')
  for await (const text of response) {
    parser.feed(text)
    const whole = arrived
    arrived = []
    for (const message of whole) {
      const event = parse(message)
      if (event !== null) yield event
    }
    if (tooLarge) throw malformed('an event without an end')
  }
}

/** The fields that are relied on. */
const SHAPES: Record<keyof StreamEvents, Record<string, (value: unknown) => boolean>> = {
  attached: { stdoutOffset: isOffset, stderrOffset: isOffset },
  stdout: { data: isText, offset: isOffset, nextOffset: isOffset },
  stderr: { data: isText, offset: isOffset, nextOffset: isOffset },
  heartbeat: {},
  reconnect: {},
  exit: {
    status: isText,
    exitCode: (value) => value === null || Number.isInteger(value),
    signal: (value) => value === null || isText(value),
    stdoutOffset: isOffset,
    stderrOffset: isOffset,
  },
  error: { code: isText, message: isText },
}

/** null: an event of a later version. */
function parse({ event: name = '', data: text }: EventSourceMessage): StreamEvent | null {
  if (!Object.hasOwn(SHAPES, name)) return null
  const data = parseObject(text)
  const shape = SHAPES[name as keyof StreamEvents]
  for (const [field, isRight] of Object.entries(shape))
    if (!isRight(data[field])) throw malformed(`${name} without its ${field}`)
  return { name, data } as unknown as StreamEvent
}

function parseObject(text: string): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(text)
    if (typeof value === 'object' && value !== null) return value as Record<string, unknown>
  } catch {
    // Said below: the parser's own words are of no use to who reads them.
  }
  throw malformed('an event that is not JSON')
}

function isText(value: unknown): boolean {
  return typeof value === 'string'
}

function isOffset(value: unknown): boolean {
  return Number.isSafeInteger(value) && Number(value) >= 0
}

export const malformed = (what: string): Failure =>
  new Failure(
    EXIT.refused,
    `The coordinator sent ${what}: it is of another version, or something is between.`,
  )
