// Validation of what a file request says, with the code that the spec gives each part (§7.2).
import type { z } from 'zod'
import { ApiError } from '../../shared/errors.ts'

/** The value, or `invalid_path` when its path is missing or no string, `invalid_request` for everything else. */
export function validate<T extends z.ZodType>(schema: T, value: unknown): z.output<T> {
  const parsed = schema.safeParse(value)
  if (parsed.success) return parsed.data
  const [issue] = parsed.error.issues
  if (issue?.path[0] === 'path') throw new ApiError('invalid_path', 'Say which path, once.')
  const field = issue?.path.join('.') ?? ''
  throw new ApiError('invalid_request', field === '' ? issue?.message : `${field}: ${issue?.message}`)
}
