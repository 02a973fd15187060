// The form of errors in the log. The stacks of expected errors are omitted.
import { stdSerializers } from 'pino'
import { ApiError } from '../../../shared/errors.ts'
import { ExpectedError } from '../expected-error.ts'

export function serializeError(error: unknown): unknown {
  if (!(error instanceof Error)) return error
  if (!(error instanceof ApiError) && !(error instanceof ExpectedError)) return stdSerializers.err(error)
  const { message, cause } = error
  return {
    ...('code' in error && { code: error.code }),
    message,
    ...(cause !== undefined && { cause: serializeError(cause) }),
  }
}
