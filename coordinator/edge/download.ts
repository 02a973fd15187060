// Forwards a file or directory from a box to a client. The agent decides whether the body follows in its response or on a
// dial-back connection.
import { pipeline } from 'node:stream'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { DOWNLOAD_PATH_HEADER } from '../../shared/download-headers.ts'
import { ApiError, type ErrorCode } from '../../shared/errors.ts'
import { LIMITS, TUNNEL_LIMITS } from '../../shared/limits.ts'
import { DIAL_BACK_HEADER } from '../../shared/protocol.ts'
import { createAgentProtocolError, readBody } from '../agents/tunnel/read-response.ts'
import type { Transfers, TunnelResponse } from '../agents/tunnel/types.ts'
import type { Actor } from '../http/actor.ts'
import type { AcquiredBox } from './acquire-box.ts'
import { MAX_ERROR_BYTES, throwAgentError } from './agent-response.ts'
import { boundedBytes } from './bounded-bytes.ts'
import {
  type ConditionalHeaders,
  checkEntityTag,
  checkHeaders,
  checkPath,
  selectConditionalHeaders,
} from './download-headers.ts'
import { createReaderHeaders } from './reader-headers.ts'
import { releaseSentChunks } from './release-sent-chunks.ts'

type Request = { isHead: boolean; conditions: ConditionalHeaders }

/** Sends a response without content, or throws an error response. */
async function sendWithoutContent(response: TunnelResponse, request: Request, reply: FastifyReply) {
  const { status, headers, body } = response
  if (status === 304 && request.conditions['if-none-match'] !== undefined) {
    body.destroy()
    const path = checkPath(headers)
    return reply
      .code(304)
      .headers({ ...checkEntityTag(headers), [DOWNLOAD_PATH_HEADER]: path })
      .send()
  }
  const size = headers['content-range'] ?? ''
  if (status === 416 && /^bytes \*\/\d{1,15}$/.test(size)) reply.header('content-range', size)
  if (request.isHead) throw createHeadError(response)
  return throwAgentError({ status, body: await readBody(body, MAX_ERROR_BYTES) })
}

/** The response to HEAD has no body with an error code, and neither has the client's response. */
const HEAD_ERROR_CODES: Readonly<Record<number, ErrorCode>> = {
  400: 'invalid_path',
  403: 'permission_denied',
  404: 'not_found',
  413: 'payload_too_large',
  416: 'range_not_satisfiable',
}

function createHeadError({ status, body }: TunnelResponse): ApiError {
  body.destroy()
  const code = HEAD_ERROR_CODES[status]
  return code === undefined
    ? createAgentProtocolError(`The agent responded with status ${status}.`)
    : new ApiError(code)
}

/**
 * Sends the content, or only its headers for HEAD. When the transfer is interrupted, the client's connection is cut, so
 * that a partial body never looks complete.
 */
export async function download(
  transfers: Transfers,
  { box, tunnel, signal }: AcquiredBox,
  path: string,
  { actor, request, reply }: { actor: Actor; request: FastifyRequest; reply: FastifyReply },
) {
  const conditions = selectConditionalHeaders(request.headers)
  const isHead = request.method === 'HEAD'
  const pending = transfers.expect(box.id)
  let isReceiving = false
  try {
    const response = await tunnel.request({
      method: isHead ? 'HEAD' : 'GET',
      path,
      headers: { ...conditions, ...createReaderHeaders(actor), [DIAL_BACK_HEADER]: pending.id },
      signal,
    })
    if (response.status !== 200 && response.status !== 206)
      return await sendWithoutContent(response, { isHead, conditions }, reply)
    if (isHead) {
      response.body.destroy()
      const { status, headers } = checkHeaders(response.headers, conditions)
      return reply.code(status).headers(headers).send()
    }
    if (response.headers[DIAL_BACK_HEADER] !== pending.id) {
      const { status, length, headers } = checkHeaders(response.headers, conditions)
      const bytes = await readBody(response.body, TUNNEL_LIMITS.inlineBodyBytes)
      if (length === null || bytes.length !== length)
        throw new ApiError('box_unreachable', 'The agent sent an incomplete file. Try again.')
      return reply.code(status).headers(headers).send(bytes)
    }
    response.body.resume()
    const transfer = await pending.connection
    const { status, headers } = checkHeaders(transfer.request.headers, conditions)
    signal.throwIfAborted()
    isReceiving = true
    signal.addEventListener('abort', () => transfer.request.destroy(), { once: true })
    transfer.request.once('end', () => transfer.response.writeHead(204).end())
    // The HTTP parser enforces the length of a file; a tar stream has none.
    const body = headers['content-length']
      ? transfer.request
      : pipeline(transfer.request, boundedBytes(LIMITS.transferBytes), () => {
          // The reply sees the error: pipeline destroys the stream that it reads.
        })
    releaseSentChunks(reply.raw)
    return reply.code(status).headers(headers).send(body)
  } finally {
    if (!isReceiving) pending.discard()
  }
}
