// Why a command could not be started, in the system's words.
import { getSystemErrorMessage } from 'node:util'
import { ApiError } from '../../shared/errors.ts'
import { errnoOf } from '../files/errors.ts'

/** The system's refusal as exec_failed; any other error as it is. */
export function startError(error: unknown): unknown {
  if (errnoOf(error) === null || !(error instanceof Error)) return error
  const words = 'errno' in error && typeof error.errno === 'number' ? getSystemErrorMessage(error.errno) : ''
  return new ApiError('exec_failed', `The command cannot be started: ${words} (${error.message}).`, {
    cause: error,
  })
}
