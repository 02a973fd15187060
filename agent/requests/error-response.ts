// Converts errors of request handlers to responses in the edge's envelope.
import type { Logger } from 'pino'
import { ApiError, type ErrorCode, edgeErrorBody } from '../../shared/errors.ts'

/**
 * Logs errors of the agent itself.
 * @param path of the request without its query, or its route, for the log
 */
export function toErrorResponse(error: unknown, path: string | undefined, log: Pick<Logger, 'error'>) {
  const apiError = toApiError(error)
  const { status, headers } = apiError
  if (status >= 500) log.error({ err: error, path }, 'request failed')
  return { status, headers, body: edgeErrorBody(apiError) }
}

function toApiError(error: unknown): ApiError {
  if (error instanceof ApiError) return error
  const { statusCode, message } = error as { statusCode?: number; message?: string }
  const code = statusCode === undefined ? undefined : CLIENT_ERRORS[statusCode]
  return code
    ? new ApiError(code, message, { cause: error })
    : new ApiError('internal_error', undefined, { cause: error })
}

/** Codes for Fastify's own errors, by status. */
const CLIENT_ERRORS: Readonly<Record<number, ErrorCode>> = {
  400: 'bad_request',
  413: 'payload_too_large',
  415: 'bad_request',
}
