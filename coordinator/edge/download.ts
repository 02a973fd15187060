// Forwards a file or directory from a box to a client. The agent decides whether the body follows in its response or on a
// dial-back connection.
import { pipeline } from 'node:stream'
import type { FastifyReply } from 'fastify'
import { DOWNLOAD_CONTENT_HEADER, DOWNLOAD_PATH_HEADER } from '../../shared/api/files.ts'
import { ApiError } from '../../shared/errors.ts'
import { LIMITS, TUNNEL_LIMITS } from '../../shared/limits.ts'
import { DIAL_BACK_HEADER } from '../../shared/protocol.ts'
import type { Transfers } from '../tunnel/types.ts'
import type { AcquiredBox } from './acquire-box.ts'
import { createAgentProtocolError, readBody, throwAgentError } from './agent-response.ts'
import { boundedBytes } from './bounded-bytes.ts'
import { releaseSentChunks } from './release-sent-chunks.ts'

type Headers = Record<string, string | string[] | undefined>

/** Validates the headers that an agent may set on a download, and drops the others. */
function checkHeaders(from: Headers): { length: number | null; headers: Record<string, string> } {
  const isDirectory = from[DOWNLOAD_CONTENT_HEADER] === 'directory'
  const path = from[DOWNLOAD_PATH_HEADER]
  if (typeof path !== 'string' || !/^[\x20-\x7e]{1,16384}$/.test(path))
    throw createAgentProtocolError('The agent sent no valid path.')
  const headers: Record<string, string> = {
    'content-type': isDirectory ? 'application/x-tar' : 'application/octet-stream',
    [DOWNLOAD_PATH_HEADER]: path,
  }
  if (isDirectory) return { length: null, headers: { ...headers, [DOWNLOAD_CONTENT_HEADER]: 'directory' } }
  const length = Number(from['content-length'])
  if (!Number.isSafeInteger(length) || length < 0)
    throw createAgentProtocolError('The agent sent no valid file size.')
  if (length > LIMITS.transferBytes)
    throw new ApiError('payload_too_large', 'The file is larger than 1 GiB. Split it on the box.')
  return { length, headers: { ...headers, 'content-length': String(length) } }
}

/** When the transfer is interrupted, the client's connection is cut, so that a partial body never looks complete. */
export async function download(
  transfers: Transfers,
  { box, tunnel, signal }: AcquiredBox,
  path: string,
  reply: FastifyReply,
) {
  const pending = transfers.expect(box.id)
  try {
    const response = await tunnel.request({
      method: 'GET',
      path,
      headers: { [DIAL_BACK_HEADER]: pending.id },
      signal,
    })
    if (response.status !== 200) return await throwAgentError(response)
    if (response.headers[DIAL_BACK_HEADER] !== pending.id) {
      const { length, headers } = checkHeaders(response.headers)
      const bytes = await readBody(response.body, TUNNEL_LIMITS.inlineBodyBytes)
      if (length === null || bytes.length !== length)
        throw new ApiError('box_unreachable', 'The agent sent an incomplete file. Try again.')
      return reply.headers(headers).send(bytes)
    }
    response.body.resume()
    const transfer = await pending.connection
    const { headers } = checkHeaders(transfer.request.headers)
    signal.addEventListener('abort', () => transfer.request.destroy(), { once: true })
    transfer.request.once('end', () => transfer.response.writeHead(204).end())
    // The HTTP parser enforces the length of a file; a tar stream has none.
    const body = headers['content-length']
      ? transfer.request
      : pipeline(transfer.request, boundedBytes(LIMITS.transferBytes), () => {
          // The reply sees the error: pipeline destroys the stream that it reads.
        })
    releaseSentChunks(reply.raw)
    return reply.headers(headers).send(body)
  } finally {
    pending.release()
  }
}
