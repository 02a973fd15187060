// Reads an event stream of the edge over several connections: resumes after a disconnect with Last-Event-ID.
import type { OpenResponse } from '../../client/http/transport.ts'
import type { AttemptResult } from '../connection/api-requests.ts'
import type { EdgeClient } from '../connection/client.ts'
import { CliError, EXIT } from '../output/exit-codes.ts'
import { CONNECTION_LOST, type Disconnect, isConnectionError, toDisconnect } from './disconnect.ts'
import { createReconnectPolicy, type ReconnectOptions } from './reconnect-policy.ts'

export type StreamProtocol<E> = {
  /** Relative to the box. */
  route: string
  /** Sent with each connection. */
  query: Record<string, string>
  readEvents(response: OpenResponse): AsyncIterable<E>
  /**
   * `connected`: the first event of a connection; a Disconnect: the server closes the connection, and `onEvent` is not
   * called. @throws CliError when a new connection cannot help
   */
  classify(event: E): 'connected' | 'data' | Disconnect
}

export type ResumableStreamOptions<E> = ReconnectOptions & {
  edge: Pick<EdgeClient, 'getOnce'>
  /** Called once while a limit of the coordinator delays the first event. */
  onWait?(reason: string): void
  /** Called when the box is not running after the first event. True: throw that error. Default: retry. */
  isBoxStopped?(): Promise<boolean>
  /** Last-Event-ID for the next connection; null: none. */
  getLastEventId(): string | null
  /** Returns true to stop reading. The next event is read after the promise resolves. */
  onEvent(event: E): Promise<boolean>
  /** A connection without data for this long is closed. Default: three heartbeat intervals, 45 s. */
  idleTimeoutMs?: number
}

const IDLE_TIMEOUT_MS = 45_000

/**
 * Resolves once `onEvent` returns true. Throws the errors of `onEvent`, the signal's reason, and CliError when a new
 * connection cannot help: the key is rejected, or the box or the process does not exist. Until the first event has
 * arrived, it also throws when the box is not running or the URL is not that of a coordinator.
 */
export async function readResumableStream<E>(
  protocol: StreamProtocol<E>,
  options: ResumableStreamOptions<E>,
): Promise<void> {
  const policy = createReconnectPolicy(options)
  let isBeforeFirstEvent = true
  let rejections = 0
  const recordEvent = (meaning: ReturnType<StreamProtocol<E>['classify']>) => {
    isBeforeFirstEvent = false
    if (meaning === 'connected') policy.recordConnect()
    else if (meaning === 'data') policy.recordData()
  }
  try {
    for (;;) {
      const disconnect = await readConnection(protocol, options, isBeforeFirstEvent, recordEvent)
      if (disconnect === null) return
      const { error } = disconnect
      if (error?.code === 'box_not_running' && (await options.isBoxStopped?.())) throw error
      if (isBeforeFirstEvent && error?.code === 'rate_limited') {
        rejections += 1
        // The slot of a connection that was just closed may still be occupied at the first attempt.
        if (rejections === 2) options.onWait?.(disconnect.reason)
      } else policy.recordDisconnect(disconnect.reason)
      await policy.waitBeforeRetry(disconnect.retryAfter)
    }
  } finally {
    policy.close()
  }
}

/** Returns null if `onEvent` returned true. */
async function readConnection<E>(
  { route, query, readEvents, classify }: StreamProtocol<E>,
  { edge, getLastEventId, onEvent, signal, idleTimeoutMs = IDLE_TIMEOUT_MS }: ResumableStreamOptions<E>,
  isBeforeFirstEvent: boolean,
  recordEvent: (meaning: ReturnType<StreamProtocol<E>['classify']>) => void,
): Promise<Disconnect | null> {
  const connection = new AbortController()
  // AbortSignal.any is not used: there may be thousands of connections in the lifetime of the signal.
  const onAbort = () => connection.abort()
  signal.addEventListener('abort', onAbort)
  let isProcessing = false
  const idleTimer = setTimeout(() => {
    // While an event is being processed, the consumer is slow and the connection is not idle.
    if (isProcessing) idleTimer.refresh()
    else connection.abort()
  }, idleTimeoutMs)
  try {
    const lastEventId = getLastEventId()
    const result = await edge.getOnce(route, query, {
      headers: lastEventId === null ? {} : { 'last-event-id': lastEventId },
      signal: connection.signal,
    })
    const disconnect = getDisconnect(result, isBeforeFirstEvent)
    if (!result.ok || disconnect !== null) return disconnect
    for await (const event of readEvents(result.response)) {
      isProcessing = true
      const meaning = classify(event)
      recordEvent(meaning)
      if (typeof meaning !== 'string') return meaning
      if (await onEvent(event)) return null
      isProcessing = false
      idleTimer.refresh()
    }
    return CONNECTION_LOST
  } catch (error) {
    if (signal.aborted) throw signal.reason
    // An error of `onEvent`, or an invalid stream: it would occur again on a new connection.
    if (isProcessing || !isConnectionError(error)) throw error
    return error instanceof CliError ? { reason: error.message, retryAfter: null } : CONNECTION_LOST
  } finally {
    signal.removeEventListener('abort', onAbort)
    clearTimeout(idleTimer)
    connection.abort()
  }
}

/** Returns null for an event stream, a Disconnect if a retry may help; throws if it cannot. */
function getDisconnect(result: AttemptResult, isBeforeFirstEvent: boolean): Disconnect | null {
  if (result.ok) {
    if (/^text\/event-stream\b/.test(result.response.headers.get('content-type') ?? '')) return null
    const reason = 'The response is not from a Boxwood coordinator.'
    if (isBeforeFirstEvent) throw new CliError(EXIT.failed, reason)
    return { reason, retryAfter: null }
  }
  return toDisconnect(result, isBeforeFirstEvent)
}
