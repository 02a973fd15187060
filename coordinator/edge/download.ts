// Forwards a file or directory from a box to a client. The content follows on a dial-back connection.
import { pipeline } from 'node:stream'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { downloadHeadSchema } from '../../shared/api/files.ts'
import { DOWNLOAD_PATH_HEADER } from '../../shared/download-headers.ts'
import { LIMITS } from '../../shared/limits.ts'
import { DIAL_BACK_HEADER } from '../../shared/protocol.ts'
import { assertTransfers, createAgentProtocolError } from '../agents/tunnel/agent-errors.ts'
import type { Transfers, TunnelCallResponse } from '../agents/tunnel/types.ts'
import { releaseSentChunks } from '../base/release-sent-chunks.ts'
import type { Actor } from '../http/actor.ts'
import type { AcquiredBox } from './acquire-box.ts'
import { MAX_ERROR_BYTES, parseAgentJson, readAgentError } from './agent-response.ts'
import { boundedBytes } from './bounded-bytes.ts'
import {
  type ConditionalHeaders,
  checkEntityTag,
  checkHeaders,
  checkPath,
  selectConditionalHeaders,
} from './download-headers.ts'
import { createReaderHeaders } from './reader-headers.ts'

/** The agent may read a whole directory before it responds. */
const HEAD_TIMEOUT_MS = 11 * 60_000

function throwDownloadError(response: TunnelCallResponse, reply: FastifyReply): never {
  const { error, fields } = readAgentError(response)
  const { size } = fields
  if (error.code === 'range_not_satisfiable' && Number.isSafeInteger(size) && Number(size) >= 0)
    reply.header('content-range', `bytes */${size}`)
  throw error
}

/** Sends the head of the content: for HEAD, and for a file that the client has already. */
function sendHead(
  body: Buffer,
  { isHead, conditions }: { isHead: boolean; conditions: ConditionalHeaders },
  reply: FastifyReply,
) {
  const head = downloadHeadSchema.safeParse(parseAgentJson(body))
  if (!head.success) throw createAgentProtocolError('The agent sent no valid head of a download.')
  if (head.data.status === 304) {
    if (conditions['if-none-match'] === undefined)
      throw createAgentProtocolError('The agent responded with status 304 without a condition.')
    const path = checkPath(head.data.headers)
    return reply
      .code(304)
      .headers({ ...checkEntityTag(head.data.headers), [DOWNLOAD_PATH_HEADER]: path })
      .send()
  }
  if (!isHead) throw createAgentProtocolError('The agent sent the head of a download without its content.')
  const { status, headers } = checkHeaders(head.data.headers, conditions)
  return reply.code(status).headers(headers).send()
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
  assertTransfers(tunnel)
  const readerHeaders = createReaderHeaders(actor)
  const pending = isHead ? null : transfers.expect(box.id)
  let isReceiving = false
  try {
    const response = await tunnel.call({
      method: 'GET',
      path,
      headers: { ...conditions, ...readerHeaders, ...(pending && { [DIAL_BACK_HEADER]: pending.id }) },
      signal,
      timeoutMs: HEAD_TIMEOUT_MS,
      maxBytes: () => MAX_ERROR_BYTES,
    })
    if (response.status !== 200) throwDownloadError(response, reply)
    if (pending === null || response.body.length > 0)
      return sendHead(response.body, { isHead, conditions }, reply)
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
    if (!isReceiving) pending?.discard()
  }
}
