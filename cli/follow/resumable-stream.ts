// Reads the event stream of a process over several connections: resumes after a disconnect with Last-Event-ID.
import type { AttemptResult } from '../api-requests.ts'
import type { EdgeClient } from '../client.ts'
import { CliError, EXIT } from '../exit-codes.ts'
import { sanitize } from '../output.ts'
import { CONNECTION_LOST, type Disconnect, isConnectionError, toDisconnect } from './disconnect.ts'
import { readEvents, type StreamEvent, type StreamName } from './events.ts'
import { createReconnectPolicy, type ReconnectOptions } from './reconnect-policy.ts'

export type ResumableStreamOptions = ReconnectOptions & {
  edge: Pick<EdgeClient, 'getOnce'>
  processId: string
  /** Sent with each connection. */
  query?: { streams?: StreamName; since?: string; timestamps?: 'true' }
  /** Called once while a limit of the coordinator delays the first event. */
  onWait?(reason: string): void
  /** Called when the box is not running after the first event. True: throw that error. Default: retry. */
  isBoxStopped?(): Promise<boolean>
  /** Last-Event-ID for the next connection. */
  getLastEventId(): string
  /** Returns true to stop reading. The next event is read after the promise resolves. */
  onEvent(event: StreamEvent): Promise<boolean>
  /** A connection without data for this long is closed. Default: three heartbeat intervals, 45 s. */
  idleTimeoutMs?: number
}

const IDLE_TIMEOUT_MS = 45_000

/**
 * Resolves once `onEvent` returns true. Throws the errors of `onEvent`, the signal's reason, and CliError when a new
 * connection cannot help: the key is rejected, or the box or the process does not exist. Until the first event has
 * arrived, it also throws when the box is not running or the URL is not that of a coordinator.
 */
export async function readResumableStream(options: ResumableStreamOptions): Promise<void> {
  const policy = createReconnectPolicy(options)
  let isBeforeFirstEvent = true
  let rejections = 0
  const recordEvent = ({ name }: StreamEvent) => {
    isBeforeFirstEvent = false
    if (name === 'attached') policy.recordConnect()
    else if (name !== 'error' && name !== 'reconnect') policy.recordData()
  }
  try {
    for (;;) {
      const disconnect = await readConnection(options, isBeforeFirstEvent, recordEvent)
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
async function readConnection(
  {
    edge,
    processId,
    query,
    getLastEventId,
    onEvent,
    signal,
    idleTimeoutMs = IDLE_TIMEOUT_MS,
  }: ResumableStreamOptions,
  isBeforeFirstEvent: boolean,
  recordEvent: (event: StreamEvent) => void,
): Promise<Disconnect | null> {
  const connection = new AbortController()
  // Not AbortSignal.any: there may be thousands of connections in the lifetime of the signal.
  const onAbort = () => connection.abort()
  signal.addEventListener('abort', onAbort)
  let isProcessing = false
  const idleTimer = setTimeout(() => {
    // While an event is being processed, the consumer is slow and the connection is not idle.
    if (isProcessing) idleTimer.refresh()
    else connection.abort()
  }, idleTimeoutMs)
  try {
    const result = await edge.getOnce(
      `/exec/${encodeURIComponent(processId)}/stream`,
      { encoding: 'base64', ...query },
      { headers: { 'last-event-id': getLastEventId() }, signal: connection.signal },
    )
    const disconnect = getDisconnect(result, isBeforeFirstEvent)
    if (!result.ok || disconnect !== null) return disconnect
    for await (const event of readEvents(result.response)) {
      isProcessing = true
      recordEvent(event)
      if (event.name === 'error') return parseErrorEvent(event.data)
      if (event.name === 'reconnect')
        return { reason: 'The coordinator requested a reconnect.', retryAfter: null }
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
    if (/^text\/event-stream\b/.test(result.response.headers['content-type'] ?? '')) return null
    const reason = 'The response is not from a Boxwood coordinator.'
    if (isBeforeFirstEvent) throw new CliError(EXIT.failed, reason)
    return { reason, retryAfter: null }
  }
  return toDisconnect(result, isBeforeFirstEvent)
}

function parseErrorEvent({ code, message }: { code: string; message: string }): Disconnect {
  if (code === 'not_found') throw new CliError(EXIT.notFound, sanitize(message), { code })
  return { reason: sanitize(message), retryAfter: null }
}
