// Converts a failed process start to an API error.
import { getSystemErrorMessage } from 'node:util'
import { ApiError } from '../../shared/errors.ts'
import { getErrno } from '../files/errors.ts'

/** A system error becomes exec_failed; any other error is returned unchanged. */
export function startError(error: unknown): unknown {
  if (getErrno(error) === null || !(error instanceof Error)) return error
  const reason = 'errno' in error && typeof error.errno === 'number' ? getSystemErrorMessage(error.errno) : ''
  return new ApiError('exec_failed', `The command cannot be started: ${reason} (${error.message}).`, {
    cause: error,
  })
}
