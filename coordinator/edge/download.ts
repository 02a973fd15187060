// Bytes from a box to a client: the box says in its answer whether they come inside it or on a connection it dials.
import { pipeline } from 'node:stream'
import type { FastifyReply } from 'fastify'
import { CONTENT_HEADER, PATH_HEADER } from '../../shared/api/files.ts'
import { ApiError } from '../../shared/errors.ts'
import { LIMITS, TUNNEL_LIMITS } from '../../shared/limits.ts'
import { DIAL_BACK_HEADER } from '../../shared/protocol.ts'
import type { Transfers } from '../tunnel/types.ts'
import type { AcquiredBox } from './acquire-box.ts'
import { readBody, throwAgentError } from './agent-response.ts'
import { boundedBytes } from './bounded-bytes.ts'
import { releaseSentChunks } from './release-sent.ts'

type Headers = Record<string, string | string[] | undefined>

/** The headers that a box may set on a download, each checked; anything else is dropped. */
function checkedHeaders(from: Headers): { length: number | null; headers: Record<string, string> } {
  const directory = from[CONTENT_HEADER] === 'directory'
  const path = from[PATH_HEADER]
  if (typeof path !== 'string' || !/^[\x20-\x7e]{1,16384}$/.test(path))
    throw new ApiError('exec_failed', 'The box did not say which path it read.')
  const headers: Record<string, string> = {
    'content-type': directory ? 'application/x-tar' : 'application/octet-stream',
    [PATH_HEADER]: path,
  }
  if (directory) return { length: null, headers: { ...headers, [CONTENT_HEADER]: 'directory' } }
  const length = Number(from['content-length'])
  if (!Number.isSafeInteger(length) || length < 0)
    throw new ApiError('exec_failed', 'The box did not say how long the file is.')
  if (length > LIMITS.transferBytes)
    throw new ApiError('payload_too_large', 'A download holds at most 1 GiB.')
  return { length, headers: { ...headers, 'content-length': String(length) } }
}

/** Answers the client; a transfer that breaks off cuts the client's connection, so that short is never taken for whole. */
export async function download(
  transfers: Transfers,
  { box, tunnel, signal }: AcquiredBox,
  path: string,
  reply: FastifyReply,
) {
  const transfer = transfers.expect(box.id)
  try {
    const response = await tunnel.request({
      method: 'GET',
      path,
      headers: { [DIAL_BACK_HEADER]: transfer.id },
      signal,
    })
    if (response.status !== 200) return await throwAgentError(response)
    if (response.headers[DIAL_BACK_HEADER] !== transfer.id) {
      const { length, headers } = checkedHeaders(response.headers)
      const bytes = await readBody(response.body, TUNNEL_LIMITS.inlineBodyBytes)
      if (length === null || bytes.length !== length)
        throw new ApiError('box_unreachable', 'The box sent less than the whole file.')
      return reply.headers(headers).send(bytes)
    }
    response.body.resume()
    const dialed = await transfer.connection
    const { headers } = checkedHeaders(dialed.request.headers)
    signal.addEventListener('abort', () => dialed.request.destroy(), { once: true })
    dialed.request.once('end', () => dialed.response.writeHead(204).end())
    // A file's length is held to by the HTTP parser; a tar has none to hold it to.
    const body = headers['content-length']
      ? dialed.request
      : pipeline(dialed.request, boundedBytes(LIMITS.transferBytes), () => {
          // A failure is the reply's to see: pipeline has destroyed the stream that it reads.
        })
    releaseSentChunks(reply.raw)
    return reply.headers(headers).send(body)
  } finally {
    transfer.release()
  }
}
