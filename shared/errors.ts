// The error codes of the API (spec §7) with their HTTP status and default message, and ApiError.

/** Code → [HTTP status, default message]. A message about a field is the field name and the rule. */
export const ERRORS = {
  bad_request: [400, 'The request is not valid. See /openapi.json.'],
  invalid_name: [
    400,
    'name must be 1 to 32 lowercase letters, digits and hyphens, and start and end with a letter or digit',
  ],
  invalid_template: [400, 'fromSnapshotId and fromTemplate must not be given together'],
  invalid_tier: [400, 'tier must be one of nano, micro, lite, flow, pro, max, ultra'],
  invalid_region: [
    400,
    'region must be one of us-west-2, us-west-1, us-east-1, us-east-2, eu-central-1, and must not be given together with a snapshot or template',
  ],
  invalid_env: [
    400,
    'env must be a JSON object of at most 100 variables with string values. A name must start with a letter or underscore and contain only letters, digits and underscores',
  ],
  invalid_labels: [
    400,
    'labels must be a JSON object of at most 32 labels with string values. A key has 1 to 63 lowercase letters, digits and any of ._/-, and starts and ends with a letter or digit. A value has at most 63 characters',
  ],
  invalid_auto_pause: [400, 'autoPauseMin must be an integer between 30 and 10080, or null'],
  invalid_pause_at: [
    400,
    'ttlMinutes must be an integer between 5 and 43200; pauseAt must be RFC 3339 with Z or an offset, or epoch seconds, in the future and at most 30 days away',
  ],
  invalid_auto_snapshot: [
    400,
    'autoSnapshotHours must be an integer between 1 and 168, or null; autoSnapshotKeep must be an integer between 1 and 10',
  ],
  resize_rejected: [400, 'The box cannot be resized now. Try again when its current change has finished.'],
  move_rejected: [400, 'The box cannot be moved now. Try again later.'],
  environment_too_large: [
    400,
    'The environment variables are larger than 64 KiB in total. Remove or shorten some.',
  ],
  invalid_env_name: [
    400,
    'envName must start with a letter or underscore and contain only letters, digits and underscores',
  ],
  invalid_image: [400, 'image must be the name of an image, such as debian:12'],
  images_unavailable: [
    400,
    'Boxes in this region use the programs of their machine and have no images. The field regions names the regions with images.',
  ],
  invalid_host: [400, 'hosts must be host names such as api.example.com, or wildcards such as *.example.com'],
  invalid_policy: [400, 'The policy is not valid. See /openapi.json.'],
  invalid_time: [
    400,
    'since and until must be RFC 3339 with Z or an offset, such as 2030-01-31T12:00:00Z, or epoch seconds',
  ],
  invalid_kind: [400, 'kind must be one kind of audit events, or several separated by commas'],
  invalid_box: [400, 'box must be the id of a box: a UUID'],
  invalid_actor: [400, 'actor must be the id of a user, such as usr_…'],
  invalid_origin: [400, 'origin must be server or client'],
  invalid_cursor: [400, 'before must be the nextBefore of the previous page'],
  invalid_limit: [400, 'limit must be an integer between 1 and 1000'],
  invalid_format: [400, 'format must be json or csv'],
  invalid_role_arn: [
    400,
    'roleArn must be the ARN of an IAM role, such as arn:aws:iam::123456789012:role/deploy',
  ],
  invalid_profile: [
    400,
    'profile must be 1 to 64 letters, digits and any of _.@+-, and start with a letter or digit',
  ],
  invalid_code: [400, 'The code is wrong or has expired. Request a new code.'],
  invalid_idempotency_key: [
    400,
    'Idempotency-Key must be 1 to 128 printable ASCII characters without spaces',
  ],
  invalid_request: [400, 'The request is not valid. See /openapi.json.'],
  invalid_provider: [400, 'provider must be one of claude, codex, opencode, pi'],
  prompt_required: [400, 'prompt must be a string that is not blank'],
  invalid_timeout: [400, 'timeoutSeconds must be a number between 1 and 600'],
  invalid_path: [400, 'The path is not valid.'],
  unauthorized: [401, 'The API key is missing or not valid. Send it as Authorization: Bearer dcp_….'],
  token_expired: [401, 'This API key has expired. Use another API key.'],
  secret_limit: [402, 'The workspace has reached its limit of secrets. Delete a secret first.'],
  share_links_need_payment: [
    402,
    'Links that need no membership are not part of the free credit. Add credit first.',
  ],
  verification_required: [403, 'This API key is not verified. Confirm the emailed code first.'],
  key_access_denied: [
    403,
    'This API key does not allow this request. Use an API key with the required access.',
  ],
  not_owner: [403, 'Only an owner of the workspace may send this request.'],
  not_allowed: [
    403,
    'Your role in the workspace does not allow this request. Ask an owner of the workspace.',
  ],
  restore_tier_not_allowed: [
    403,
    'The disk of this tier is too small for the snapshot. Choose a larger tier.',
  ],
  policy_denied: [403, 'A policy of the workspace does not allow this request.'],
  share_links_blocked: [
    403,
    'The policy shareLinks of the workspace does not allow links that need no membership.',
  ],
  secret_not_granted: [
    403,
    'The secret has grants, and none of them covers this box. Grant it to the box first.',
  ],
  permission_denied: [403, 'The box user has no permission to read or write this path.'],
  not_found: [404, 'Not found. Check the id, and that this API key may access it.'],
  member_not_found: [404, 'The workspace has no such member. Check the user id or the email address.'],
  image_not_found: [404, 'There is no such image, or its registry does not let this coordinator read it.'],
  method_not_allowed: [405, 'This route does not support the method. See the Allow header.'],
  request_timeout: [408, 'The request body arrived too slowly. Try again.'],
  name_taken: [409, 'A box with this name already exists. Choose another name.'],
  env_name_taken: [409, 'The box already has a secret under this variable. Unmount it first.'],
  box_restricted: [409, 'The box is restricted: it gets no secrets and no links that need no membership.'],
  image_in_use: [409, 'A box or a snapshot uses the image. Delete it first.'],
  image_not_downloaded: [
    409,
    'The image comes from no registry, so it could not be downloaded again. The operator can remove it with the command of the engine.',
  ],
  image_unusable: [409, 'Boxes cannot run this image. The message says why.'],
  environment_limit: [409, 'The workspace has reached its limit of environments. Delete one first.'],
  tier_unavailable: [409, 'This tier is not available. Choose another tier.'],
  box_limit: [409, 'The workspace has reached its box limit. Delete a box first.'],
  insufficient_balance: [409, 'The balance of the workspace is too low. Add credit first.'],
  wake_rejected: [409, 'The balance of the workspace is too low to wake the box. Add credit first.'],
  workspace_held: [409, 'The workspace is paused. Contact support.'],
  snapshot_in_progress: [409, 'The snapshot is still being taken. Try again when it is available.'],
  snapshot_unavailable: [409, 'This snapshot cannot be used. Choose another snapshot.'],
  no_volume: [409, 'The box has no files that the coordinator can copy. The message says why.'],
  box_failed: [409, 'The box could not be provisioned. Delete it and create another.'],
  box_not_running: [409, 'The box is not running. Wake it first.'],
  prompt_in_progress: [409, 'A run is in progress. Wait for it, interrupt it, or send queue or new.'],
  provider_not_signed_in: [409, 'The coding agent has no credential on the box. Sign in first.'],
  provider_not_installed: [409, 'The coding agent is not installed on the box. Install it first.'],
  no_session_to_continue: [409, 'The provider has no session to continue. Omit continue.'],
  prompt_limit_reached: [409, 'The box has reached its limit of prompt runs. Wait for a run, or send queue.'],
  provider_mismatch: [409, 'The conversation belongs to another provider.'],
  workspace_closing: [409, 'The workspace is closing. An owner can reopen it.'],
  share_link_limit: [
    409,
    'The workspace already has 10 links that need no membership. Revoke one, or wait until one expires.',
  ],
  member_exists: [409, 'The workspace already has a member with this email address.'],
  last_owner: [409, 'The workspace needs an owner. Make another member an owner first.'],
  already_connected: [409, 'The role is connected under another profile. Disconnect it first.'],
  profile_taken: [409, 'Another role of the workspace has this profile. Choose another one.'],
  aws_roles_limit: [409, 'The workspace has reached its limit of AWS roles. Disconnect one first.'],
  idempotency_in_progress: [
    409,
    'The first request with this Idempotency-Key is still running. Try again after Retry-After seconds.',
  ],
  path_exists: [409, 'The path exists already. Choose another path, or remove it first.'],
  directory_not_empty: [
    409,
    'The directory is not empty. The query recursive=1 removes it with its content.',
  ],
  desktop_not_installed: [409, 'The box lacks programs of the desktop. `GET /desktop` names them.'],
  payload_too_large: [413, 'The body is too large.'],
  range_not_satisfiable: [416, 'The range is outside the file. Content-Range has the size of the file.'],
  idempotency_key_reused: [422, 'This Idempotency-Key was used for a different request. Use a new key.'],
  cli_update_required: [426, 'This version of the box command is too old for the coordinator. Update it.'],
  snapshot_limit: [429, 'The workspace has reached its snapshot limit. Delete a snapshot first.'],
  customer_session_limit: [429, 'The workspace has reached its limit of open terminals. Close one first.'],
  rate_limited: [429, 'Too many requests. Try again after Retry-After seconds.'],
  internal_error: [500, "Internal error. See the coordinator's log."],
  box_unreachable: [502, 'The box cannot be reached. Try again.'],
  image_pull_failed: [502, 'The image could not be downloaded. The message says why.'],
  exec_failed: [502, 'The operation failed on the box.'],
  desktop_stop_failed: [502, 'The desktop could not be stopped. Some of its processes may still run.'],
  resolve_failed: [
    503,
    'The box could not be looked up, because the database of the coordinator failed. Try again.',
  ],
  port_share_disabled: [503, 'This deployment does not share ports.'],
  share_links_disabled: [503, 'This deployment does not share ports by link.'],
  aws_federation_disabled: [
    503,
    'This deployment has no identity issuer for AWS. Ask its operator to set BOXWOOD_OIDC_ISSUER.',
  ],
  aws_quick_connect_unavailable: [
    503,
    'This deployment has no link that creates a role. Create the role in AWS, and connect it by its ARN.',
  ],
  control_plane_unavailable: [503, 'The coordinator is not available. Try again.'],
} as const satisfies Record<string, readonly [number, string]>

export type ErrorCode = keyof typeof ERRORS

export function isErrorCode(code: unknown): code is ErrorCode {
  return typeof code === 'string' && Object.hasOwn(ERRORS, code)
}

export type ErrorDetails = {
  /** Additional fields of the error body, such as `expiresAt` or `state`. */
  fields?: Record<string, unknown>
  /** Response headers, such as `Retry-After`. */
  headers?: Record<string, string>
  cause?: unknown
}

/** An error that is sent to the client with its code and message. Any other error becomes `internal_error`. */
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

/** The error envelope of the edge (spec §1) and of the agent. */
export function edgeErrorBody(error: ApiError) {
  return { ok: false as const, error: { code: error.code, message: error.message, ...error.fields } }
}

/**
 * The error form of POST /desktop/stop (spec §7.2): only the code, and the fields that two codes have on every route (§5.5,
 * §5.8).
 */
export function bareErrorBody(error: ApiError): { error: ErrorCode } {
  const { code, fields } = error
  if (code === 'key_access_denied') return controlErrorBody(error)
  return { error: code, ...(code === 'token_expired' && { expiresAt: fields.expiresAt }) }
}

/** The error envelope of the control plane (spec §1). */
export function controlErrorBody(error: ApiError) {
  return { error: error.code, message: error.message, ...error.fields }
}
