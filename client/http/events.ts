// Reads server-sent events from the body of a response.
import { createParser } from 'eventsource-parser'
import {
  type BoxwoodError,
  createError,
  createInvalidError,
  isRecord,
  parseJson,
  toLostError,
} from './errors.ts'
import type { OpenResponse } from './transport.ts'

/** A stream that sends nothing for this long is lost. The coordinator sends something every 15 s. */
const SILENCE_MS = 45_000
/** More than the largest event, which is one of a prompt. */
const MAX_EVENT_CHARS = 4 * 1024 * 1024

/** An event as it arrives. The type of the parser is not in the types of the package. */
export type ServerEvent = { event?: string | undefined; id?: string | undefined; data: string }

export type ReadOptions = {
  /** How long the connection may be silent, in milliseconds. Default: 45 s. */
  idleMs?: number | undefined
  /** Gets a sign of life between events. */
  onComment?(): void
}

/**
 * Ends where the response ends. Throws ConnectionError when the connection is lost or silent, invalid_response when it is no event
 * stream, and the reason of the signal.
 * @param signal that of the request
 */
export async function* readEvents(
  { body, cancel }: OpenResponse,
  signal: AbortSignal | undefined,
  { idleMs = SILENCE_MS, onComment = () => undefined }: ReadOptions = {},
): AsyncGenerator<ServerEvent, void, undefined> {
  if (body === null) return
  const events: ServerEvent[] = []
  let isTooLarge = false
  const parser = createParser({
    maxBufferSize: MAX_EVENT_CHARS,
    onEvent: (event) => void events.push(event),
    onComment,
    onError: ({ type }) => {
      isTooLarge ||= type === 'max-buffer-size-exceeded'
    },
  })
  const decoder = new TextDecoder()
  const chunks = body[Symbol.asyncIterator]()
  try {
    for (;;) {
      const { done, value } = await before(idleMs, chunks.next()).catch((error: Error) => {
        signal?.throwIfAborted()
        throw toLostError(error)
      })
      if (done) return
      parser.feed(decoder.decode(value, { stream: true }))
      yield* events.splice(0)
      if (isTooLarge) throw createInvalidError('an event that is too large')
    }
  } finally {
    cancel()
  }
}

/** @throws when nothing has arrived for this long, in milliseconds */
async function before<T>(ms: number, next: Promise<T>): Promise<T> {
  let timer: ReturnType<typeof setTimeout> | undefined
  const silence = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => reject(new Error(`nothing arrived for ${ms / 1000} s`)), ms)
  })
  try {
    return await Promise.race([next, silence])
  } finally {
    clearTimeout(timer)
  }
}

export type NamedEvent = { name: string; fields: Record<string, unknown> }

/** Parses events with these names, whose data are JSON objects. null: another event. The parser throws BoxwoodError. */
export const createEventParser =
  (names: readonly string[]) =>
  ({ event = '', data }: ServerEvent): NamedEvent | null => {
    if (!names.includes(event)) return null
    const fields = parseJson(data)
    if (!isRecord(fields)) throw createInvalidError(`an event ${event} that is not JSON`)
    return { name: event, fields }
  }

/** The errors after which no new connection helps. */
const STREAM_STATUSES: Readonly<Record<string, number>> = { not_found: 404, box_not_running: 409 }

/** An error of the stream, which is temporary unless what it follows does not exist, or the box does not run. */
export function toStreamError({ code, message }: Record<string, unknown>): BoxwoodError {
  const known = typeof code === 'string' ? code : 'invalid_response'
  return createError({
    code: known,
    message: typeof message === 'string' ? message : known,
    status: STREAM_STATUSES[known] ?? 503,
  })
}
