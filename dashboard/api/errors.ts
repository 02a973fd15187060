// Errors as the pages show them.
import { BoxwoodError, createError } from '../../client/http/errors.ts'

export function toBoxwoodError(error: unknown): BoxwoodError {
  if (error instanceof BoxwoodError) return error
  const message = error instanceof Error ? error.message : String(error)
  return createError({ code: 'unexpected_error', message, status: 0 })
}
