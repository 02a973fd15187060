// Sends errors as HTTP responses, in the envelope of each host. Unexpected errors are logged in full; the client gets
// internal_error without details.
import { type ServerResponse, STATUS_CODES } from 'node:http'
import type { Socket } from 'node:net'
import type { FastifyError, FastifyReply, FastifyRequest } from 'fastify'
import {
  ApiError,
  bareErrorBody,
  controlErrorBody,
  type ErrorCode,
  edgeErrorBody,
} from '../../shared/errors.ts'
import { LARGE_COOKIES_RESPONSE, TOO_LARGE } from './large-requests.ts'
import { closeLingering } from './lingering-close.ts'
import type { Route } from './route.ts'

/** The two hosts of the spec (§1). They differ in their error envelope and their general error code. */
export type Host = 'control' | 'edge'

export const getGeneralCode = (host: Host): ErrorCode => (host === 'edge' ? 'invalid_request' : 'bad_request')

const ENVELOPES = { control: controlErrorBody, edge: edgeErrorBody } as const

/** Fastify's own 4xx errors become the host's general code. Returns null for any other unexpected error. */
function toApiError(error: unknown, host: Host): ApiError | null {
  if (error instanceof ApiError) return error
  const { code, statusCode, message } = error as Partial<FastifyError>
  if (typeof code === 'string' && code.startsWith('FST_ERR_') && statusCode !== undefined && statusCode < 500)
    return new ApiError(getGeneralCode(host), message)
  return null
}

/** @param bareErrors of the route. Default: that of the request, which a request with another method does not have */
export function sendError(
  error: unknown,
  request: FastifyRequest,
  reply: FastifyReply,
  host: Host,
  bareErrors: Route['bareErrors'] = request.routeOptions.config.route?.bareErrors,
): FastifyReply {
  let apiError = toApiError(error, host)
  if (apiError === null) {
    apiError = new ApiError('internal_error', undefined, { headers: { 'x-request-id': request.id } })
    // A client that disconnects makes pending work of its request fail. That is not an error of the coordinator.
    const level = reply.raw.destroyed ? 'debug' : 'error'
    request.log[level](
      { err: error, method: request.method, route: request.routeOptions.url },
      'request failed',
    )
  } else if (apiError.status >= 500) {
    // The error has no cause when the coordinator is stopping.
    const isStopping = apiError.code === 'control_plane_unavailable' && apiError.cause === undefined
    const { box } = request.params as { box?: string }
    request.log[isStopping ? 'debug' : 'warn'](
      { box, err: apiError, method: request.method, route: request.routeOptions.url },
      'request rejected',
    )
  }
  const sent = bareErrors === undefined ? apiError : renameCode(apiError, bareErrors)
  return reply
    .code(sent.status)
    .headers(sent.headers)
    .type('application/json; charset=utf-8')
    .send(bareErrors === undefined ? ENVELOPES[host](sent) : bareErrorBody(sent))
}

function renameCode(error: ApiError, codes: NonNullable<Route['bareErrors']>): ApiError {
  const code = codes[error.code]
  const { fields, headers } = error
  return code === undefined ? error : new ApiError(code, undefined, { fields, headers })
}

const TIMEOUT = {
  status: 408,
  error: 'request_timeout',
  message: 'The request arrived too slowly. Try again.',
}
const INVALID = {
  status: 400,
  error: 'bad_request',
  message: 'The request is not valid HTTP. Check the client and any proxy in front of the coordinator.',
}
const LARGE_HEADERS = {
  status: TOO_LARGE,
  error: 'bad_request',
  message: 'The request line and headers are too large. Shorten them.',
}

/** The bytes of a response, in the control plane's envelope. */
function formatResponse({ status, error, message }: typeof INVALID): string {
  const body = JSON.stringify({ error, message })
  return (
    `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\ncontent-type: application/json; charset=utf-8\r\n` +
    `content-length: ${Buffer.byteLength(body)}\r\nconnection: close\r\n\r\n${body}`
  )
}

/** Responds to a request with large headers other than cookies. */
export function sendLargeHeaders(response: ServerResponse): void {
  const { status, ...body } = LARGE_HEADERS
  response
    .writeHead(status, { 'content-type': 'application/json; charset=utf-8', connection: 'close' })
    .end(JSON.stringify(body))
}

/**
 * Responds to bytes that are not valid HTTP. The host is unknown, so the control plane's envelope is used. Headers above Node's
 * limit are those of a browser with large cookies, which gets a page.
 */
export function respondToClientError(error: NodeJS.ErrnoException, socket: Socket): void {
  if (error.code === 'ECONNRESET' || !socket.writable) {
    socket.destroy()
    return
  }
  if (error.code === 'HPE_HEADER_OVERFLOW') socket.write(LARGE_COOKIES_RESPONSE)
  else socket.write(formatResponse(error.code === 'ERR_HTTP_REQUEST_TIMEOUT' ? TIMEOUT : INVALID))
  // These listeners are those of the parser, which would report each further chunk as an error.
  socket.removeAllListeners('data')
  closeLingering(socket, socket)
}
