// The errors of the client: one class per family of error codes, by the status of the response.

export type ErrorDetails = {
  /** The code of the API, such as `not_found`, also one that this version does not know. */
  code: string
  message: string
  /** Of the response; 0: there was none. */
  status: number
  /** Identifies the request in the log of the coordinator. */
  requestId?: string | null
  /** The other fields of the refusal, such as `rule` of policy_denied. */
  fields?: Readonly<Record<string, unknown>>
  /** When another request may succeed, in milliseconds. */
  retryAfterMs?: number | null
  cause?: unknown
}

/** Each rejection of the client, except for the reason of an aborted signal and a wrong argument (TypeError, RangeError). */
export class BoxwoodError extends Error {
  override readonly name: string = 'BoxwoodError'
  readonly code: string
  readonly status: number
  readonly requestId: string | null
  readonly fields: Readonly<Record<string, unknown>>
  readonly retryAfterMs: number | null

  constructor({ code, message, status, requestId, fields, retryAfterMs, cause }: ErrorDetails) {
    super(message, cause === undefined ? {} : { cause })
    this.code = code
    this.status = status
    this.requestId = requestId ?? null
    this.fields = fields ?? {}
    this.retryAfterMs = retryAfterMs ?? null
  }
}

/** The request is not valid: 400, 413, 416 and others. */
export class InvalidRequestError extends BoxwoodError {
  override readonly name = 'InvalidRequestError'
}
/** The API key or session is missing, not valid or expired: 401. */
export class AuthenticationError extends BoxwoodError {
  override readonly name = 'AuthenticationError'
}
/** The credit is used up: 402. */
export class PaymentRequiredError extends BoxwoodError {
  override readonly name = 'PaymentRequiredError'
}
/** The role or the key does not allow the request: 403. */
export class PermissionError extends BoxwoodError {
  override readonly name: string = 'PermissionError'
}
/** A policy of the workspace refuses the request. `rule` names it. */
export class PolicyDeniedError extends PermissionError {
  override readonly name = 'PolicyDeniedError'
  get rule(): string {
    return String(this.fields.rule ?? '')
  }
}
/** The box, file, process or other object does not exist: 404 and 410. */
export class NotFoundError extends BoxwoodError {
  override readonly name = 'NotFoundError'
}
/** The state of the object does not allow the request, or a limit is reached: 409. */
export class ConflictError extends BoxwoodError {
  override readonly name = 'ConflictError'
}
/** There were too many requests: 429. `retryAfterMs` says when the next one is accepted. */
export class RateLimitError extends BoxwoodError {
  override readonly name = 'RateLimitError'
}
/** The coordinator or the agent of the box failed, or is not available: 5xx. */
export class UnavailableError extends BoxwoodError {
  override readonly name: string = 'UnavailableError'
}
/** There was no response: `no_response`. What a request changes may have been changed. */
export class ConnectionError extends UnavailableError {
  override readonly name = 'ConnectionError'
}
/** The time of the call was over: `timeout`. What a request changes may have been changed. */
export class TimeoutError extends BoxwoodError {
  override readonly name = 'TimeoutError'
}

type ErrorClass = new (details: ErrorDetails) => BoxwoodError

const CLASSES: Readonly<Record<number, ErrorClass>> = {
  401: AuthenticationError,
  402: PaymentRequiredError,
  403: PermissionError,
  404: NotFoundError,
  409: ConflictError,
  410: NotFoundError,
  429: RateLimitError,
}

/** The status of data of the coordinator that the client cannot read. */
export const INVALID_DATA = 422

/** The error of the family of its status. */
export function createError(details: ErrorDetails): BoxwoodError {
  const { code, status } = details
  if (code === 'policy_denied') return new PolicyDeniedError(details)
  const known = CLASSES[status]
  if (known !== undefined) return new known(details)
  return status >= 500 ? new UnavailableError(details) : new InvalidRequestError(details)
}

/** The data cannot be read, and would be the same again. @param what was sent, such as 'a message without a type' */
export const createInvalidError = (what: string): BoxwoodError =>
  createError({ code: 'invalid_response', message: `The coordinator sent ${what}.`, status: INVALID_DATA })

/** An open connection was lost. */
export const toLostError = (error?: Error): ConnectionError =>
  new ConnectionError({
    code: 'no_response',
    message: `The connection was lost${error === undefined ? '' : `: ${error.message}`}.`,
    status: 0,
    cause: error,
  })

export const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

type Headers = { get(name: string): string | null }

/** The error of a response that is not 2xx. @param text the body */
export const parseErrorResponse = (status: number, text: string, headers: Headers): BoxwoodError =>
  createResponseError(parseJson(text), status, headers)

/**
 * Reads the forms of the control plane and of the boxes.
 * @param body the parsed body; undefined: it is not JSON
 */
export function createResponseError(body: unknown, status: number, headers: Headers): BoxwoodError {
  const requestId = headers.get('x-request-id')
  const retryAfterMs = parseRetryAfter(headers.get('retry-after'))
  const { error, ...rest } = isRecord(body) ? body : {}
  const { code, message, ...fields } = isRecord(error) ? error : { ...rest, code: error }
  if (typeof code !== 'string')
    return createError({
      code: 'invalid_response',
      message:
        status >= 300 && status < 400
          ? `The response is a redirect (${status}). The URL must be that of the coordinator itself.`
          : `The response with status ${status} is not one of a Boxwood coordinator. Check the URL, and the proxy in front of it.`,
      status,
      requestId,
      retryAfterMs,
    })
  return createError({
    code,
    message: typeof message === 'string' ? message : code,
    status,
    requestId,
    fields,
    retryAfterMs,
  })
}

/** Milliseconds; null for the form of a date, which the coordinator does not send. */
const parseRetryAfter = (text: string | null): number | null =>
  text !== null && /^\d{1,9}$/.test(text) ? Number(text) * 1000 : null

/** undefined: the text is not JSON. */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
