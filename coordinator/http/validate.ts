// Validates requests against their route's schemas. Handlers trust the types.
import type { z } from 'zod'
import { ApiError } from '../../shared/errors.ts'
import { formatField, validationMessage } from '../../shared/validation-message.ts'
import { getGeneralCode, type Host } from './errors.ts'
import type { Route } from './route.ts'

type Issues = readonly z.core.$ZodIssue[]

function parse(
  schema: z.ZodType | undefined,
  value: unknown,
  toError: (issues: Issues) => ApiError,
): unknown {
  if (schema === undefined) return undefined
  const result = schema.safeParse(value, { reportInput: true })
  if (result.success) return result.data
  throw toError(result.error.issues)
}

/** The path of an unknown field ends with its parent. */
const getPath = (issue: Issues[number] | undefined): PropertyKey[] =>
  issue?.code === 'unrecognized_keys' ? [...issue.path, ...issue.keys] : (issue?.path ?? [])

export type RequestParts = { params: unknown; query: unknown; body: unknown }

/**
 * Throws the error code of the field or the host's general code.
 * @param createPathError for a malformed path
 */
export function validate(
  route: Route,
  host: Host,
  parts: RequestParts,
  createPathError: () => ApiError,
): RequestParts {
  const { params, query, body } = route.request ?? {}
  const { fieldErrorCodes = {}, bodyErrorCode } = route
  const createError = (issues: Issues, root: 'query' | 'body') => {
    const [field = ''] = getPath(issues[0])
    if (root === 'body' && bodyErrorCode !== undefined && field !== '')
      return new ApiError(bodyErrorCode, validationMessage(issues, root), {
        fields: { field: formatField([field], root) },
      })
    const code = Object.hasOwn(fieldErrorCodes, field) ? fieldErrorCodes[String(field)] : undefined
    return new ApiError(code ?? getGeneralCode(host), validationMessage(issues, root))
  }
  return {
    params: parse(params, parts.params, createPathError),
    query: parse(query, parts.query, (issues) => createError(issues, 'query')),
    // A request without a body is treated as an empty object.
    body: parse(body, parts.body === undefined ? {} : parts.body, (issues) => createError(issues, 'body')),
  }
}
