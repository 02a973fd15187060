// Converts errors of request handlers to responses in the edge's envelope.
import type { Logger } from 'pino'
import { ApiError, edgeErrorBody } from '../../shared/errors.ts'

/**
 * Logs errors of the agent itself.
 * @param path of the request without its query, for the log
 */
export function toErrorResponse(error: unknown, path: string | undefined, log: Pick<Logger, 'error'>) {
  const apiError =
    error instanceof ApiError ? error : new ApiError('internal_error', undefined, { cause: error })
  const { status } = apiError
  if (status >= 500) log.error({ err: error, path }, 'request failed')
  return { status, body: edgeErrorBody(apiError) }
}
