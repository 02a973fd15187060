// The form of errors in the log. The coordinator throws some errors on purpose, with a message for people: their stacks
// are omitted.
import { stdSerializers } from 'pino'
import { ApiError } from '../../shared/errors.ts'
import { PermanentProviderError } from '../lifecycle/provider.ts'

export function serializeError(error: unknown): unknown {
  if (!(error instanceof Error)) return error
  if (!(error instanceof ApiError) && !(error instanceof PermanentProviderError))
    return stdSerializers.err(error)
  const { message, cause } = error
  return {
    ...('code' in error && { code: error.code }),
    message,
    ...(cause !== undefined && { cause: serializeError(cause) }),
  }
}
