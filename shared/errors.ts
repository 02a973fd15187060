// The one table of error codes (spec §7): what each means over HTTP. Both hosts answer from it.

/** code → [HTTP status, the sentence used when the place that throws has nothing more exact to say]. */
export const ERRORS = {
  bad_request: [400, 'The request is not valid.'],
  invalid_name: [
    400,
    'A name is 1 to 32 lowercase letters, digits and hyphens, and begins and ends with a letter or digit.',
  ],
  invalid_template: [400, 'Name at most one of fromSnapshotId and fromTemplate.'],
  invalid_tier: [400, 'tier is one of nano, micro, lite, flow, pro, max, ultra.'],
  invalid_region: [
    400,
    'region is one of us-west-2, us-west-1, us-east-1, us-east-2, eu-central-1, and is not given together with a snapshot or template.',
  ],
  invalid_env: [400, 'env maps at most 100 variable names to strings.'],
  invalid_auto_pause: [400, 'autoPauseMin is an integer from 30 to 10080, or null.'],
  invalid_pause_at: [400, 'ttlMinutes is an integer from 5 to 43200.'],
  environment_too_large: [400, 'The variables together are larger than 64 KiB.'],
  invalid_idempotency_key: [400, 'Idempotency-Key is 1 to 128 printable ASCII characters without spaces.'],
  invalid_request: [400, 'The request is not valid.'],
  invalid_timeout: [400, 'timeoutSeconds is a number from 1 to 600.'],
  invalid_path: [400, 'The path is not valid.'],
  unauthorized: [401, 'Send a valid API key as Authorization: Bearer dcp_….'],
  token_expired: [401, 'This API key has expired.'],
  verification_required: [403, 'Confirm the emailed code first.'],
  key_access_denied: [403, 'This API key does not cover that.'],
  not_owner: [403, 'Only an owner may do that.'],
  not_allowed: [403, 'Your role does not allow that.'],
  permission_denied: [403, 'The box user may not read or write that path.'],
  not_found: [404, 'No such thing.'],
  method_not_allowed: [405, 'This route does not take that method.'],
  request_timeout: [408, 'The request body arrived too slowly.'],
  name_taken: [409, 'A box with that name exists already.'],
  tier_unavailable: [409, 'That size is not available.'],
  box_limit: [409, 'The workspace has as many boxes as it may.'],
  box_failed: [409, 'The box could not be provisioned. Delete it and create another.'],
  box_not_running: [409, 'The box is not running. Wake it first.'],
  workspace_closing: [409, 'The workspace is closing.'],
  idempotency_in_progress: [409, 'The first request with this Idempotency-Key is still running.'],
  payload_too_large: [413, 'The body is too large.'],
  idempotency_key_reused: [422, 'This Idempotency-Key was used for a different request.'],
  cli_update_required: [426, 'This version of the box command is too old for the coordinator.'],
  rate_limited: [429, 'Too many requests. Try again after Retry-After seconds.'],
  internal_error: [500, 'Something went wrong on our side. The log of the coordinator says what.'],
  box_unreachable: [502, 'The box cannot be reached.'],
  exec_failed: [502, 'The box could not do it.'],
  control_plane_unavailable: [503, 'The control plane cannot be reached. Try again.'],
} as const satisfies Record<string, readonly [number, string]>

export type ErrorCode = keyof typeof ERRORS

export function isErrorCode(code: unknown): code is ErrorCode {
  return typeof code === 'string' && Object.hasOwn(ERRORS, code)
}

export type ErrorDetails = {
  /** Fields added beside the code, such as `expiresAt` or `state`. */
  fields?: Record<string, unknown>
  /** Response headers, such as `Retry-After`. */
  headers?: Record<string, string>
  cause?: unknown
}

/** A refusal that a caller is told about. Everything else that is thrown becomes `internal_error`. */
export class ApiError extends Error {
  readonly code: ErrorCode
  readonly status: number
  readonly fields: Record<string, unknown>
  readonly headers: Record<string, string>

  constructor(code: ErrorCode, message?: string, details: ErrorDetails = {}) {
    super(message ?? ERRORS[code][1], { cause: details.cause })
    this.name = 'ApiError'
    this.code = code
    this.status = ERRORS[code][0]
    this.fields = details.fields ?? {}
    this.headers = details.headers ?? {}
  }
}

/** The edge's error envelope (spec §1), which the agent speaks too. */
export function edgeErrorBody(error: ApiError) {
  return { ok: false as const, error: { code: error.code, message: error.message, ...error.fields } }
}

/** The control plane's error envelope (spec §1). */
export function controlErrorBody(error: ApiError) {
  return { error: error.code, message: error.message, ...error.fields }
}
