// The error responses of the API.

/** Without a response, and with one that is not of the API, the code is `no_response` or `invalid_response`. */
export class RequestError extends Error {
  readonly code: string
  /** 0: there is no response. */
  readonly status: number
  readonly requestId: string | null

  constructor(code: string, message: string, status: number, requestId: string | null = null) {
    super(message)
    this.name = 'RequestError'
    this.code = code
    this.status = status
    this.requestId = requestId
  }
}

/** @param body the parsed body of the response; undefined: it is not JSON */
export function createResponseError(body: unknown, status: number, requestId: string | null): RequestError {
  const fields: Record<string, unknown> = isRecord(body) ? body : {}
  // The edge has the code and the message in an object.
  const { error: nested } = fields
  const source: Record<string, unknown> = isRecord(nested) ? { ...nested, error: nested.code } : fields
  if (typeof source.error !== 'string')
    return new RequestError(
      'invalid_response',
      `The response with status ${status} is not one of the API. Check the proxy in front of the coordinator.`,
      status,
      requestId,
    )
  const message = typeof source.message === 'string' ? source.message : source.error
  return new RequestError(source.error, message, status, requestId)
}

const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null

/** Any error, as the pages show it. */
export function toRequestError(error: unknown): RequestError {
  if (error instanceof RequestError) return error
  return new RequestError('unexpected_error', error instanceof Error ? error.message : String(error), 0)
}
