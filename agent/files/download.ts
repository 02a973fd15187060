// GET /download: a file as raw bytes or a directory as a tar archive, in the response or over a dial-back connection.
import { Readable } from 'node:stream'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { DOWNLOAD_CONTENT_HEADER, DOWNLOAD_PATH_HEADER, pathQuerySchema } from '../../shared/api/files.ts'
import { ApiError } from '../../shared/errors.ts'
import { LIMITS, TUNNEL_LIMITS } from '../../shared/limits.ts'
import { DIAL_BACK_HEADER } from '../../shared/protocol.ts'
import { validateRequest } from '../validate-request.ts'
import { archiveDirectory, checkArchivable } from './archive.ts'
import type { FileDeps } from './deps.ts'
import { encodePathHeader, PATH_ERROR_CODES, resolvePath } from './paths.ts'
import {
  CHUNK_BYTES,
  createFixedLengthStream,
  type OpenFile,
  openForReading,
  readChunks,
  readEntireFile,
} from './read.ts'

type Content = {
  headers: Record<string, string>
  /** A Buffer is small enough for the response. Larger content is streamed: as a response, or as transfer chunks. */
  body: Buffer | { createStream(): Readable; chunks(): AsyncIterable<Buffer> }
}

/**
 * Responds with the content. When the request has DIAL_BACK_HEADER, the coordinator accepts a dial-back connection:
 * only a small file is then sent in the response. Anything else gets an empty response that repeats the header, and the
 * body is sent over the dial-back connection.
 */
export async function download(request: FastifyRequest, reply: FastifyReply, deps: FileDeps) {
  const file = await openForReading(
    resolvePath(
      deps.home,
      validateRequest(pathQuerySchema, request.query, { root: 'query', codes: PATH_ERROR_CODES }).path,
    ),
    deps.stateDir,
  )
  const { headers, body } = await readContent(file, deps.stateDir).catch(async (error) => {
    await file.handle.close()
    throw error
  })
  const transferId = request.headers[DIAL_BACK_HEADER]
  if (Buffer.isBuffer(body)) return reply.headers(headers).send(body)
  if (typeof transferId !== 'string') {
    const stream = body.createStream()
    resetOnError(stream, request)
    return reply.headers(headers).send(stream)
  }
  deps.transferDialer
    .send(transferId, headers, body.chunks())
    .catch((err) => deps.log.warn({ err, path: file.path }, 'download transfer failed'))
    .finally(() => file.handle.close())
  return reply.header(DIAL_BACK_HEADER, transferId).send('')
}

async function readContent({ path, handle, stat }: OpenFile, stateDir: string): Promise<Content> {
  if (stat.isDirectory()) {
    await checkArchivable(path, LIMITS.transferBytes, stateDir)
    await handle.close()
    const chunks = () => archiveDirectory(path, LIMITS.transferBytes, stateDir)
    const body = {
      createStream: () => Readable.from(chunks(), { objectMode: false, highWaterMark: CHUNK_BYTES }),
      chunks,
    }
    const headers = { 'content-type': 'application/x-tar', [DOWNLOAD_CONTENT_HEADER]: 'directory' }
    return { headers: { ...headers, [DOWNLOAD_PATH_HEADER]: encodePathHeader(path) }, body }
  }
  if (stat.size > LIMITS.transferBytes)
    throw new ApiError('payload_too_large', `${path} is larger than 1 GiB.`)
  const headers = (length: number) => ({
    'content-type': 'application/octet-stream',
    'content-length': String(length),
    [DOWNLOAD_PATH_HEADER]: encodePathHeader(path),
  })
  if (stat.size > TUNNEL_LIMITS.inlineBodyBytes) {
    const body = {
      createStream: () => createFixedLengthStream(handle, stat.size, path),
      chunks: () => readChunks(handle, stat.size, path),
    }
    return { headers: headers(stat.size), body }
  }
  const bytes = await readEntireFile(handle, stat.size, LIMITS.inlineFileBytes)
  if (bytes === null) throw new ApiError('exec_failed', `${path} grows faster than it can be read.`)
  await handle.close()
  return { headers: headers(bytes.length), body: bytes }
}

/**
 * Node resets a destroyed HTTP/2 response with NO_ERROR, which clients treat as a normal end: an archive, which has no
 * content-length, would be truncated silently. Destroying the stream with the error resets it with an error code.
 */
function resetOnError(body: Readable, request: FastifyRequest): void {
  body.once('error', (error) => {
    if ('stream' in request.raw) (request.raw.stream as { destroy(error: Error): void }).destroy(error)
  })
}
