// Reads server-sent events from the body of a response.
import { createParser, type EventSourceMessage } from 'eventsource-parser'
import { type BoxwoodError, ConnectionError, createError } from './errors.ts'
import type { TransportResponse } from './transport.ts'

/** A stream that sends nothing for this long is lost. The coordinator sends something every 15 s. */
const SILENCE_MS = 45_000

/**
 * Ends where the response ends. Throws ConnectionError when the connection is lost or silent, and the reason of the signal.
 * @param signal that of the request
 */
export async function* readEvents(
  { body }: TransportResponse,
  signal: AbortSignal | undefined,
): AsyncGenerator<EventSourceMessage, void, undefined> {
  if (body === null) return
  const events: EventSourceMessage[] = []
  const parser = createParser({ onEvent: (event) => void events.push(event) })
  // Not for await: Safari has no asynchronous iterator of a stream.
  const reader = body.pipeThrough(new TextDecoderStream()).getReader()
  try {
    for (;;) {
      const { done, value } = await readBefore(reader, SILENCE_MS).catch((error: Error) => {
        signal?.throwIfAborted()
        throw toLostError(error)
      })
      if (done) return
      parser.feed(value)
      yield* events.splice(0)
    }
  } finally {
    reader.cancel().catch(() => undefined)
  }
}

async function readBefore(reader: ReadableStreamDefaultReader<string>, ms: number) {
  let timer: ReturnType<typeof setTimeout> | undefined
  const silence = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => reject(new Error('nothing arrived for 45 s')), ms)
  })
  try {
    return await Promise.race([reader.read(), silence])
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
