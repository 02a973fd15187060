// Validates a request from the coordinator against a schema.
import type { z } from 'zod'
import { ApiError, type ErrorCode } from '../shared/errors.ts'
import { validationMessage } from '../shared/validation-message.ts'

export type ValidateOptions = {
  /** How messages name the value itself. Default: body. */
  root?: 'body' | 'query'
  /** Error code by top-level field. Default: invalid_request. */
  codes?: Readonly<Record<string, ErrorCode>>
}

/** @throws ApiError that names the field and the rule it violates */
export function validateRequest<T extends z.ZodType>(
  schema: T,
  value: unknown,
  { root = 'body', codes = {} }: ValidateOptions = {},
): z.output<T> {
  const parsed = schema.safeParse(value, { reportInput: true })
  if (parsed.success) return parsed.data
  const { issues } = parsed.error
  const code = codes[String(issues[0]?.path[0])] ?? 'invalid_request'
  throw new ApiError(code, validationMessage(issues, root))
}
