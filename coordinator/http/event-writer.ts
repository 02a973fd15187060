// Writes server-sent events to a client: back-pressure, keep-alive comments, and a final event in every case.
import { once } from 'node:events'
import type { Writable } from 'node:stream'
import type { FastifyBaseLogger } from 'fastify'
import { ApiError } from '../../shared/errors.ts'
import { LIMITS } from '../../shared/limits.ts'

/** The headers of every response with server-sent events. */
export const EVENT_STREAM_HEADERS = {
  'content-type': 'text/event-stream',
  'cache-control': 'no-store',
  // Disables response buffering in nginx.
  'x-accel-buffering': 'no',
}

/** Whether Accept has the type. Parameters such as `q` are ignored. */
export const acceptsEventStream = (accept: string | undefined): boolean =>
  (accept ?? '')
    .split(',')
    .some((type) => type.split(';', 1)[0]?.trim().toLowerCase() === 'text/event-stream')

/** @param json of one line @param id the position after the event, for Last-Event-ID */
export const formatEvent = (name: string, id: string, json: string): string =>
  `event: ${name}\nid: ${id}\ndata: ${json}\n\n`

export type EventWriter = {
  /** Aborts when the stream has to end. Everything that the stream awaits must reject with its reason then. */
  readonly signal: AbortSignal
  /** Resolves when the client has accepted the text: at most one text is buffered. */
  write(text: string): Promise<void>
}

export type EventStreamOptions = {
  log: Pick<FastifyBaseLogger, 'error'>
  /** Aborts when the coordinator is about to stop. */
  closing: AbortSignal
  /** Aborts when the client disconnects, and with an ApiError when its credential may no longer read the stream. */
  signal: AbortSignal
  /** The client's position, for the id of an error. */
  getPosition(): string
  /** Interval of keep-alive comments without an event. Default: 15 s. */
  keepAliveMs?: number
  /** After this time, a client that accepts nothing is disconnected. Default: 10 minutes. */
  stalledMs?: number
  /** How long a client that does not read may stay connected after the final event. Default: 30 s. */
  lingerMs?: number
}

/** The linger time while the coordinator stops. */
const CLOSING_LINGER_MS = 1_000

class ClientDisconnected extends Error {}

const KEEP_ALIVE = ': keep-alive\n\n'

/**
 * Calls `produce`, and ends the stream with the event that it returns. When it rejects, when the credential is revoked or
 * the coordinator stops, the final event is `error`.
 * @param client ended, or destroyed after the linger time
 */
export async function serveEvents(
  client: Writable,
  options: EventStreamOptions,
  produce: (writer: EventWriter) => Promise<string>,
): Promise<void> {
  const { log, closing, signal, getPosition } = options
  const {
    keepAliveMs = LIMITS.streamHeartbeatMs,
    stalledMs = LIMITS.streamReconnectMs,
    lingerMs = 30_000,
  } = options
  const stopped = new AbortController()
  const onClosing = () =>
    stopped.abort(
      new ApiError('control_plane_unavailable', 'The coordinator is stopping. Reconnect with Last-Event-ID.'),
    )
  const onClientClose = () => stopped.abort(new ClientDisconnected())
  const onAbort = () =>
    stopped.abort(signal.reason instanceof ApiError ? signal.reason : new ClientDisconnected())
  closing.addEventListener('abort', onClosing)
  signal.addEventListener('abort', onAbort)
  client.on('close', onClientClose)
  client.on('error', () => undefined)
  if (client.destroyed) onClientClose()
  if (signal.aborted) onAbort()
  if (closing.aborted) onClosing()

  const keepAlive = setInterval(() => {
    if (!client.writableNeedDrain) client.write(KEEP_ALIVE)
  }, keepAliveMs)
  const writer: EventWriter = {
    signal: stopped.signal,
    async write(text) {
      stopped.signal.throwIfAborted()
      keepAlive.refresh()
      if (client.write(text)) return
      const stalled = setTimeout(() => client.destroy(), stalledMs)
      try {
        await once(client, 'drain', { signal: stopped.signal })
      } catch {
        throw stopped.signal.aborted ? stopped.signal.reason : new ClientDisconnected()
      } finally {
        clearTimeout(stalled)
      }
    },
  }

  let finalEvent: string | null
  try {
    finalEvent = await produce(writer)
  } catch (error) {
    const reason: unknown = stopped.signal.aborted ? stopped.signal.reason : error
    const isDisconnected = reason instanceof ClientDisconnected
    if (!isDisconnected && !(reason instanceof ApiError)) log.error({ err: reason }, 'event stream failed')
    finalEvent = isDisconnected ? null : formatEvent('error', getPosition(), describeError(reason))
  } finally {
    clearInterval(keepAlive)
    closing.removeEventListener('abort', onClosing)
    signal.removeEventListener('abort', onAbort)
    client.off('close', onClientClose)
  }
  if (finalEvent === null) return
  client.end(finalEvent)
  const linger = setTimeout(() => client.destroy(), closing.aborted ? CLOSING_LINGER_MS : lingerMs)
  client.once('close', () => clearTimeout(linger))
}

/** The data of an event `error`. */
export function describeError(error: unknown): string {
  const { code, message } = error instanceof ApiError ? error : new ApiError('internal_error')
  return JSON.stringify({ code, message })
}
