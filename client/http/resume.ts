// Reads an event stream over several connections. The caller keeps the position, and knows what the events mean.
import { BoxwoodError, ConnectionError, createError, toLostError } from './errors.ts'
import { type ReadOptions, readEvents, type ServerEvent } from './events.ts'
import { createReconnect, isTemporary } from './reconnect.ts'
import type { OpenResponse } from './transport.ts'

export type ResumeOptions<Event> = {
  signal: AbortSignal | undefined
  /** How long the stream may be interrupted, in milliseconds; Infinity: without a limit. */
  outageMs: number
  /** A connection without a sign of life for this long is lost, in milliseconds. Default: three heartbeats, 45 s. */
  idleMs?: number | undefined
  /** Requests the stream after the position of the caller. */
  open(): Promise<OpenResponse>
  /** null: an event that this version does not know. What it throws ends the stream, as a repetition would be the same. */
  parse(message: ServerEvent): Event | null
  /** data: the outage is over; alive: the connection is; an error: the connection ends with this event, which is not passed on. */
  classify(event: Event): 'data' | 'alive' | BoxwoodError
  /** null: a connection has sent its first event; else why the stream is interrupted. */
  onConnection?: ((error: BoxwoodError | null) => void) | undefined
  /**
   * Whether to open another connection after an error. Default: when it may be temporary.
   * @param wasConnected whether a connection has sent an event before
   */
  canRetry?: ((error: BoxwoodError, wasConnected: boolean) => boolean | Promise<boolean>) | undefined
}

/**
 * Yields the events that `parse` knows. It does not end by itself: the caller stops reading after the last event. Throws the reason of the
 * signal, and BoxwoodError when another connection cannot help, or the outage has lasted too long.
 */
export async function* resumeEvents<Event>({
  signal,
  outageMs,
  idleMs,
  open,
  parse,
  classify,
  onConnection,
  canRetry = isTemporary,
}: ResumeOptions<Event>): AsyncGenerator<Event, never, undefined> {
  const reconnect = createReconnect(outageMs, signal)
  const readOptions = { idleMs, onComment: reconnect.recordAlive }
  let wasConnected = false
  for (;;) {
    const connection = readConnection(open, signal, readOptions)
    let lost: BoxwoodError
    let isFirst = true
    try {
      for (;;) {
        const next = await connection.next()
        if (next.done) {
          lost = next.value
          break
        }
        const event = parse(next.value)
        const meaning = event === null ? 'alive' : classify(event)
        if (meaning instanceof BoxwoodError) {
          lost = meaning
          break
        }
        if (meaning === 'data') reconnect.recordData()
        else reconnect.recordAlive()
        if (isFirst) onConnection?.(null)
        isFirst = false
        wasConnected = true
        if (event !== null) yield event
      }
    } finally {
      await connection.return(toLostError())
    }
    if (!(await canRetry(lost, wasConnected))) throw lost
    onConnection?.(lost)
    await reconnect.waitAfter(lost)
  }
}

/** Returns why the connection was lost or refused. Throws for a stream that is not valid. */
async function* readConnection(
  open: () => Promise<OpenResponse>,
  signal: AbortSignal | undefined,
  options: ReadOptions,
): AsyncGenerator<ServerEvent, BoxwoodError, undefined> {
  let response: OpenResponse
  try {
    response = await open()
  } catch (error) {
    if (error instanceof BoxwoodError) return error
    throw error
  }
  if (!/^text\/event-stream\b/.test(response.headers.get('content-type') ?? '')) {
    response.cancel()
    return createError({
      code: 'invalid_response',
      message:
        'The response is not a stream of a Boxwood coordinator. Check the URL, and the proxy in front of it.',
      status: response.status,
      requestId: response.headers.get('x-request-id'),
    })
  }
  try {
    yield* readEvents(response, signal, options)
    return toLostError()
  } catch (error) {
    if (error instanceof ConnectionError) return error
    throw error
  }
}
