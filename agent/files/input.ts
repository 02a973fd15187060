// Validates file requests and picks the error code of the spec (§7.2).
import type { z } from 'zod'
import { ApiError } from '../../shared/errors.ts'
import { validationMessage } from '../../shared/validation-message.ts'

/** Throws `invalid_path` when the path is missing or not a string, `invalid_request` for every other fault. */
export function validate<T extends z.ZodType>(schema: T, value: unknown): z.output<T> {
  const parsed = schema.safeParse(value, { reportInput: true })
  if (parsed.success) return parsed.data
  const { issues } = parsed.error
  const code = issues[0]?.path[0] === 'path' ? 'invalid_path' : 'invalid_request'
  throw new ApiError(code, validationMessage(issues))
}
