// Decides whether a failed request or connection is retried, for streams that resume.
import type { FailedAttempt } from '../connection/api-requests.ts'
import { CliError, EXIT } from '../output/exit-codes.ts'
import { sanitize } from '../output/print.ts'

/** Why a connection that is to be reopened was closed. `retryAfter` is in seconds; `error` is that of a rejected request. */
export type Disconnect = { reason: string; retryAfter: number | null; error?: CliError }

export const CONNECTION_LOST: Disconnect = { reason: 'The connection was lost.', retryAfter: null }

/**
 * @param isFirst whether no connection was successful before: then the URL may be wrong, or the box not running
 * @throws CliError when a retry cannot help
 */
export function toDisconnect({ error, status, retryAfter }: FailedAttempt, isFirst: boolean): Disconnect {
  // When a connection was lost, the coordinator may still count it.
  if (isFirst && error.code === 'customer_session_limit') throw error
  if (status >= 500 || status === 429 || status === 408) return { reason: error.message, retryAfter, error }
  // An error response without a code comes from a proxy, for example while the coordinator restarts.
  const isTemporary = error.code === null || error.code === 'box_not_running'
  if (!isFirst && isTemporary) return { reason: error.message, retryAfter, error }
  throw error
}

/** Connection errors are system errors, which have a `code`, or CliErrors with EXIT.unreachable. */
export const isConnectionError = (error: unknown): error is Error =>
  error instanceof CliError ? error.exitCode === EXIT.unreachable : error instanceof Error && 'code' in error

/** Parses an error that the server sends as the last event of a stream. @throws CliError when a retry cannot help */
export function parseErrorEvent({ code, message }: { code: string; message: string }): Disconnect {
  if (code === 'not_found') throw new CliError(EXIT.notFound, sanitize(message), { code })
  return { reason: sanitize(message), retryAfter: null }
}
