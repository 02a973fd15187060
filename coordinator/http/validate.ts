// What a request brings, checked by the route's schemas once. Inside, types are trusted.
import type { z } from 'zod'
import { ApiError, ERRORS, type ErrorCode } from '../../shared/errors.ts'
import { generalCode, type Host } from './errors.ts'
import type { Route } from './route.ts'

type Issue = z.core.$ZodIssue

function ruleOf(issue: Issue): string {
  if (issue.code === 'invalid_type' && issue.input === undefined) return 'is required'
  return issue.message
}

/** Names the field and the rule it breaks. */
function refusal(issue: Issue, codes: Route['codes'], host: Host): ApiError {
  const [field] = issue.path
  const general = generalCode(host)
  if (field === undefined) return new ApiError(general, 'The body must be a JSON object.')
  const own: ErrorCode | undefined =
    codes !== undefined && Object.hasOwn(codes, String(field)) ? codes[String(field)] : undefined
  const problem = `${issue.path.join('.')}: ${ruleOf(issue)}`
  return new ApiError(own ?? general, own === undefined ? problem : `${ERRORS[own][1]} (${problem})`)
}

function check(schema: z.ZodType | undefined, value: unknown, fail: (issue: Issue) => ApiError): unknown {
  if (schema === undefined) return undefined
  const result = schema.safeParse(value, { reportInput: true })
  if (result.success) return result.data
  const [issue] = result.error.issues
  throw issue === undefined ? new Error('A schema failed without an issue.') : fail(issue)
}

export type Received = { params: unknown; query: unknown; body: unknown }

/** Throws not_found for a malformed path, else the code that the route or the host has for the field. */
export function validate(route: Route, host: Host, received: Received): Received {
  const { params, query, body } = route.request ?? {}
  const fail = (issue: Issue) => refusal(issue, route.codes, host)
  return {
    params: check(params, received.params, () => new ApiError('not_found')),
    query: check(query, received.query, fail),
    // No body at all is a request with nothing in it.
    body: check(body, received.body === undefined ? {} : received.body, fail),
  }
}
