// Converts a failed process start to an API error.
import { getSystemErrorMessage } from 'node:util'
import { ApiError } from '../../shared/errors.ts'
import { getSystemErrorCode } from '../files/errors.ts'

/** Converts a system error to exec_failed. Returns any other error unchanged. */
export function toStartError(error: unknown): unknown {
  if (getSystemErrorCode(error) === null || !(error instanceof Error)) return error
  const reason = 'errno' in error && typeof error.errno === 'number' ? getSystemErrorMessage(error.errno) : ''
  return new ApiError('exec_failed', `The command cannot be started: ${reason} (${error.message}).`, {
    cause: error,
  })
}
