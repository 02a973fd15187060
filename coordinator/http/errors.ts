// The one place where a refusal becomes an answer, in the envelope of its host. What nobody meant to throw is
// logged in full and told in general.
import { STATUS_CODES } from 'node:http'
import type { Socket } from 'node:net'
import type { FastifyError, FastifyReply, FastifyRequest } from 'fastify'
import { ApiError, controlErrorBody, type ErrorCode, edgeErrorBody } from '../../shared/errors.ts'

/** The two hosts of the spec (§1): they differ in their error envelope and their general code. */
export type Host = 'control' | 'edge'

export const generalCode = (host: Host): ErrorCode => (host === 'edge' ? 'invalid_request' : 'bad_request')

const ENVELOPES = { control: controlErrorBody, edge: edgeErrorBody } as const

/** Fastify's own refusals of a request are the caller's doing; everything else unknown is ours. */
function toApiError(error: unknown, host: Host): ApiError | null {
  if (error instanceof ApiError) return error
  const { code, statusCode, message } = error as Partial<FastifyError>
  if (typeof code === 'string' && code.startsWith('FST_ERR_') && statusCode !== undefined && statusCode < 500)
    return new ApiError(generalCode(host), message)
  return null
}

/** Answers `request` with the error. */
export function sendError(
  error: unknown,
  request: FastifyRequest,
  reply: FastifyReply,
  host: Host,
): FastifyReply {
  let refusal = toApiError(error, host)
  if (refusal === null) {
    refusal = new ApiError('internal_error', undefined, { headers: { 'x-request-id': request.id } })
    // A client that went away makes whatever was under way for it fail; that is no fault of ours.
    const level = reply.raw.destroyed ? 'debug' : 'error'
    request.log[level](
      { err: error, method: request.method, route: request.routeOptions.url },
      'request failed',
    )
  } else if (refusal.status >= 500) {
    request.log.warn({ err: refusal, route: request.routeOptions.url }, 'request refused')
  }
  return reply
    .code(refusal.status)
    .headers(refusal.headers)
    .type('application/json; charset=utf-8')
    .send(ENVELOPES[host](refusal))
}

const PARSE_FAILURES: Record<string, [status: number, message: string]> = {
  ERR_HTTP_REQUEST_TIMEOUT: [408, 'The request arrived too slowly.'],
  HPE_HEADER_OVERFLOW: [431, 'The headers of the request are too large.'],
}

/** Answers what is not even HTTP. No host is known yet, so it gets the control plane's envelope. */
export function answerClientError(error: NodeJS.ErrnoException, socket: Socket): void {
  if (error.code === 'ECONNRESET' || !socket.writable) {
    socket.destroy()
    return
  }
  const [status, message] = PARSE_FAILURES[error.code ?? ''] ?? [400, 'The request is not valid HTTP.']
  const body = JSON.stringify({ error: status === 408 ? 'request_timeout' : 'bad_request', message })
  socket.end(
    `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\ncontent-type: application/json; charset=utf-8\r\n` +
      `content-length: ${Buffer.byteLength(body)}\r\nconnection: close\r\n\r\n${body}`,
    () => socket.destroy(),
  )
}
