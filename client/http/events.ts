// Reads server-sent events from the body of a response.
import { createParser, type EventSourceMessage } from 'eventsource-parser'
import { type BoxwoodError, ConnectionError, createError } from './errors.ts'
import type { OpenResponse } from './transport.ts'

/** A stream that sends nothing for this long is lost. The coordinator sends something every 15 s. */
const SILENCE_MS = 45_000

/**
 * Ends where the response ends. Throws ConnectionError when the connection is lost or silent, and the reason of the signal.
 * @param signal that of the request
 */
export async function* readEvents(
  { body, cancel }: OpenResponse,
  signal: AbortSignal | undefined,
): AsyncGenerator<EventSourceMessage, void, undefined> {
  if (body === null) return
  const events: EventSourceMessage[] = []
  const parser = createParser({ onEvent: (event) => void events.push(event) })
  const decoder = new TextDecoder()
  const chunks = body[Symbol.asyncIterator]()
  try {
    for (;;) {
      const { done, value } = await before(SILENCE_MS, chunks.next()).catch((error: Error) => {
        signal?.throwIfAborted()
        throw toLostError(error)
      })
      if (done) return
      parser.feed(decoder.decode(value, { stream: true }))
      yield* events.splice(0)
    }
  } finally {
    cancel()
  }
}

/** @throws when nothing has arrived for this long, in milliseconds */
async function before<T>(ms: number, next: Promise<T>): Promise<T> {
  let timer: ReturnType<typeof setTimeout> | undefined
  const silence = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => reject(new Error('nothing arrived for 45 s')), ms)
  })
  try {
    return await Promise.race([next, silence])
  } finally {
    clearTimeout(timer)
  }
}

export const toLostError = (error?: Error): ConnectionError =>
  new ConnectionError({
    code: 'no_response',
    message: `The connection was lost${error === undefined ? '' : `: ${error.message}`}.`,
    status: 0,
    cause: error,
  })

/** The errors after which no new connection helps. */
const STREAM_STATUSES: Readonly<Record<string, number>> = { not_found: 404, box_not_running: 409 }

/** An error of the stream, which is temporary unless what it follows does not exist, or the box does not run. */
export const toStreamError = ({ code, message }: { code: string; message: string }): BoxwoodError =>
  createError({ code, message, status: STREAM_STATUSES[code] ?? 503 })
