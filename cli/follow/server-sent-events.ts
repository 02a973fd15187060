// Reads server-sent events from a response, at the speed of the consumer.
import { createParser, type EventSourceMessage } from 'eventsource-parser'
import type { OpenResponse } from '../../client/http/transport.ts'
import { invalidDataError } from '../connection/server-data.ts'

export type EventParser<E> = {
  /** The largest event. */
  maxChars: number
  /** Returns null for an unknown event: a newer coordinator may send additional events. @throws CliError */
  parse(message: EventSourceMessage): E | null
  /** The event for a comment, which keeps the connection open. Default: none. */
  comment?: E
}

/**
 * Yields the events of `response` until the response ends. Ignores a partial event at the end. Reads one event at a
 * time, so that a slow consumer applies backpressure.
 * @throws CliError for an invalid event; the connection's error when the connection is lost
 */
export async function* readServerSentEvents<E>(
  { body }: OpenResponse,
  { maxChars, parse, comment }: EventParser<E>,
): AsyncGenerator<E, void, undefined> {
  let pending: (EventSourceMessage | 'comment')[] = []
  let isTooLarge = false
  const parser = createParser({
    maxBufferSize: maxChars,
    onEvent: (message) => void pending.push(message),
    onComment: () => void pending.push('comment'),
    onError: (error) => {
      isTooLarge ||= error.type === 'max-buffer-size-exceeded'
    },
  })
  if (body === null) return
  const decoder = new TextDecoder()
  for await (const bytes of body) {
    parser.feed(decoder.decode(bytes, { stream: true }))
    const complete = pending
    pending = []
    for (const message of complete) {
      const event = message === 'comment' ? (comment ?? null) : parse(message)
      if (event !== null) yield event
    }
    if (isTooLarge) throw invalidDataError('an event that is too large')
  }
}
