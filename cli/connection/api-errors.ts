// Converts failed requests to CliErrors: a message for the user and an exit code.
import { type BoxwoodError, INVALID_DATA } from '../../client/http/errors.ts'
import { CliError, EXIT } from '../output/exit-codes.ts'
import { sanitize } from '../output/print.ts'
import { describeCertificateError } from './certificate-errors.ts'
import { type CoordinatorConfig, TYPED_URL } from './find-coordinator.ts'
import { createVersionError } from './server-data.ts'

/** The user typed a value that the API does not accept. */
const WRONG_USAGE_CODES = [
  'bad_request',
  'invalid_request',
  'invalid_name',
  'invalid_tier',
  'invalid_region',
  'invalid_template',
  'invalid_env',
  'invalid_labels',
  'invalid_env_name',
  'invalid_host',
  'invalid_role_arn',
  'invalid_profile',
  'environment_too_large',
  'invalid_auto_pause',
  'invalid_pause_at',
  'invalid_auto_snapshot',
  'invalid_timeout',
  'invalid_provider',
  'invalid_image',
  'prompt_required',
  'invalid_policy',
  'invalid_time',
  'invalid_kind',
  'invalid_box',
  'invalid_actor',
  'invalid_origin',
  'invalid_cursor',
  'invalid_limit',
]

/** Exit codes by the API's error code. Codes that are not listed: EXIT.failed. */
const EXIT_CODE_BY_ERROR_CODE: Record<string, number> = {
  unauthorized: EXIT.notAuthenticated,
  token_expired: EXIT.notAuthenticated,
  verification_required: EXIT.notAuthenticated,
  not_found: EXIT.notFound,
  image_not_found: EXIT.notFound,
  ...Object.fromEntries(WRONG_USAGE_CODES.map((code) => [code, EXIT.usage])),
  box_unreachable: EXIT.unreachable,
  control_plane_unavailable: EXIT.unreachable,
}

/** The code of the client for a response that is not one of the API. */
const INVALID_RESPONSE = 'invalid_response'

const CONNECTION_ERRORS: Record<string, string> = {
  ECONNREFUSED: 'connection refused',
  ENOTFOUND: 'host not found',
  EAI_AGAIN: 'DNS lookup failed',
  ECONNRESET: 'connection reset',
  ETIMEDOUT: 'timed out',
  EHOSTUNREACH: 'no route to host',
  EPIPE: 'connection closed',
}

/** Returns the error of a request to `url` without a response, or with an incomplete response. */
export function toUnreachableError(
  error: unknown,
  { baseUrl, urlSource }: CoordinatorConfig,
  url: string,
): CliError {
  if (error instanceof CliError) return error
  const { origin } = new URL(baseUrl)
  const problem = describeConnectionError(error)
  const { origin: requestOrigin } = new URL(url)
  // The coordinator reports the URL of its boxes.
  if (requestOrigin !== origin)
    return new CliError(
      EXIT.unreachable,
      `Cannot reach the boxes at ${requestOrigin} (${problem}). ${origin} reports this URL for its boxes; BOXWOOD_PUBLIC_URL of the coordinator sets it.`,
      { cause: error },
    )
  const hint = urlSource.endsWith('coordinator.json')
    ? 'Start it with `box up`.'
    : `Check ${urlSource === 'BOXWOOD_URL' ? urlSource : formatUrlSource(urlSource)}, and that the coordinator is running.`
  const message = `Cannot reach the coordinator at ${origin} (${problem}). ${hint}`
  return new CliError(EXIT.unreachable, message, { cause: error })
}

/** Whether no coordinator has responded: another attempt may succeed. */
export const isUnreachable = (error: unknown): error is CliError =>
  error instanceof CliError && error.exitCode === EXIT.unreachable

const formatUrlSource = (urlSource: string): string =>
  urlSource === TYPED_URL ? urlSource : `the URL in ${urlSource}`

function describeConnectionError(error: unknown): string {
  if (!(error instanceof Error)) return sanitize(String(error))
  // OpenSSL's error for a plain HTTP response. The original text has several lines and internal addresses.
  if (error.message.includes('wrong version number')) return 'the server does not use TLS; try http://'
  const code = 'code' in error ? String(error.code) : ''
  return CONNECTION_ERRORS[code] ?? describeCertificateError(code) ?? sanitize(error.message).trim()
}

/** Returns the error of a response that is not 2xx, or not JSON. */
export function toApiError(
  { status, code, message, fields }: BoxwoodError,
  config: CoordinatorConfig,
): CliError {
  const { baseUrl, urlSource } = config
  const { origin } = new URL(baseUrl)
  if (code === INVALID_RESPONSE && status === INVALID_DATA) return createVersionError(sanitize(message))
  if (code === INVALID_RESPONSE)
    return new CliError(
      EXIT.failed,
      `The response from ${origin} (HTTP ${status}) is not from a Boxwood coordinator. Check ${formatUrlSource(urlSource)}.`,
    )
  if (code === 'unauthorized' || code === 'token_expired')
    return createApiError(code, describeRejection(code, config), fields)
  const [, limit] = BODY_LIMIT.exec(message) ?? []
  if (limit !== undefined) return new RequestTooLongError(code, Number(limit))
  // A wrong path in BOXWOOD_URL: the coordinator has no such route.
  const pathHint =
    code === 'not_found' && new URL(baseUrl).pathname !== '/api/v1'
      ? ` Check the path in ${urlSource}, such as ${origin}.`
      : ''
  return createApiError(code, `${message}${pathHint}`, fields)
}

function describeRejection(code: string, { baseUrl, key, keySource, profile }: CoordinatorConfig): string {
  const { origin } = new URL(baseUrl)
  if (key === null && profile?.session === undefined) return `${origin} has refused the sign-in.`
  if (key === null)
    return `The sign-in at ${origin} has expired or was ended. Sign in again with \`box login\`.`
  const problem = code === 'token_expired' ? 'has expired' : `was rejected by ${origin}`
  const isOfProfile = profile !== undefined && profile.key === key
  return `The API key in ${keySource} ${problem}. ${isOfProfile ? 'Sign in again with `box login`.' : getKeyAdvice(keySource)}`
}

function getKeyAdvice(keySource: string): string {
  if (keySource === 'BOXWOOD_API_KEY') return 'Set BOXWOOD_API_KEY to a valid key.'
  // The file in a data directory: a sign-in on this machine creates another key.
  return keySource.endsWith('owner.key') ? 'Sign in with `box login`.' : 'Use another key.'
}

/**
 * An error with the API's error code, which the message ends with.
 * @param fields the other fields of the error, which --json prints
 */
export const createApiError = (
  code: string,
  message: string,
  fields: Record<string, unknown> = {},
): CliError =>
  new CliError(getExitCode(code), `${sanitize(message)} (${sanitize(code)})`, {
    code,
    fields,
  })

/** The message of the coordinator for a body above its limit, in bytes. */
const BODY_LIMIT = /^body must be at most (\d+) bytes$/

export class RequestTooLongError extends CliError {
  /** The limit, such as `64 KiB`. */
  readonly size: string

  constructor(code: string, limitBytes: number) {
    const kib = limitBytes / 1024
    const size = kib % 1024 === 0 ? `${kib / 1024} MiB` : `${kib} KiB`
    super(getExitCode(code), `The request is longer than ${size}. Use shorter values (${sanitize(code)})`, {
      code,
    })
    this.size = size
  }
}

const getExitCode = (code: string): number => EXIT_CODE_BY_ERROR_CODE[code] ?? EXIT.failed
