// Reads the event stream of a process over several connections: resumes after a disconnect with Last-Event-ID.
import type { AttemptResult } from '../api-requests.ts'
import type { EdgeClient } from '../client.ts'
import { CliError, EXIT } from '../exit-codes.ts'
import { sanitize } from '../output.ts'
import { readEvents, type StreamEvent } from './events.ts'
import { createReconnectPolicy, type ReconnectOptions, type ReconnectPolicy } from './reconnect-policy.ts'

export type ResumableStreamOptions = ReconnectOptions & {
  edge: Pick<EdgeClient, 'getOnce'>
  processId: string
  /** Last-Event-ID for the next connection. */
  getLastEventId(): string
  /** Returns true to stop reading. The next event is read after the promise resolves. */
  onEvent(event: StreamEvent): Promise<boolean>
  /** A connection without data for this long is closed. Default: three heartbeat intervals, 45 s. */
  idleTimeoutMs?: number
}

/** Why a connection that is to be reopened was closed. `retryAfter` is in seconds. */
type Disconnect = { reason: string; retryAfter: number | null }

const IDLE_TIMEOUT_MS = 45_000

/**
 * Resolves once `onEvent` returns true. Throws the errors of `onEvent`, the signal's reason, and CliError when a new
 * connection cannot help: the key is rejected, or the box or the process does not exist. Until the first event has
 * arrived, it also throws when the box is not running or the URL is not that of a coordinator.
 */
export async function readResumableStream(options: ResumableStreamOptions): Promise<void> {
  const policy = createReconnectPolicy(options)
  let isBeforeFirstEvent = true
  const recordEvent = ({ name }: StreamEvent) => {
    isBeforeFirstEvent = false
    if (name === 'attached') policy.recordConnect()
    else if (name !== 'error' && name !== 'reconnect') policy.recordData()
  }
  try {
    for (;;) {
      const disconnect = await readConnection(options, isBeforeFirstEvent, recordEvent)
      if (disconnect === null) return
      policy.recordDisconnect(disconnect.reason)
      await waitBeforeRetry(policy, disconnect, options.signal)
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
      { encoding: 'base64' },
      { headers: { 'last-event-id': getLastEventId() }, signal: connection.signal },
    )
    const disconnect = getDisconnect(result, isBeforeFirstEvent)
    if (!result.ok || disconnect !== null) return disconnect
    for await (const event of readEvents(result.response)) {
      isProcessing = true
      recordEvent(event)
      if (event.name === 'error') return toDisconnect(event.data)
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

const CONNECTION_LOST: Disconnect = { reason: 'The connection was lost.', retryAfter: null }

/** Returns null for an event stream, a Disconnect if a retry may help; throws if it cannot. */
function getDisconnect(result: AttemptResult, isBeforeFirstEvent: boolean): Disconnect | null {
  if (result.ok) {
    if (/^text\/event-stream\b/.test(result.response.headers['content-type'] ?? '')) return null
    const reason = 'The response is not from a Boxwood coordinator.'
    if (isBeforeFirstEvent) throw new CliError(EXIT.failed, reason)
    return { reason, retryAfter: null }
  }
  const { error, status, retryAfter } = result
  if (status >= 500 || status === 429 || status === 408) return { reason: error.message, retryAfter }
  // An error response without a code comes from a proxy, for example while the coordinator restarts.
  const isTemporary = error.code === null || error.code === 'box_not_running'
  if (!isBeforeFirstEvent && isTemporary) return { reason: error.message, retryAfter }
  throw error
}

function toDisconnect({ code, message }: { code: string; message: string }): Disconnect {
  if (code === 'not_found') throw new CliError(EXIT.notFound, sanitize(message), { code })
  return { reason: sanitize(message), retryAfter: null }
}

/** Connection errors are system errors, which have a `code`, or CliErrors with EXIT.unreachable. */
const isConnectionError = (error: unknown): error is Error =>
  error instanceof CliError ? error.exitCode === EXIT.unreachable : error instanceof Error && 'code' in error

async function waitBeforeRetry(
  policy: ReconnectPolicy,
  { retryAfter }: Disconnect,
  signal: AbortSignal,
): Promise<void> {
  await policy.waitBeforeRetry(retryAfter).catch((error) => {
    throw signal.aborted ? signal.reason : error
  })
}
