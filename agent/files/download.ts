// GET /download: a file as it is, a folder as a tar, in the answer or on a connection of its own.
import { Readable } from 'node:stream'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { CONTENT_HEADER, PATH_HEADER, pathQuery } from '../../shared/api/files.ts'
import { ApiError } from '../../shared/errors.ts'
import { LIMITS, TUNNEL_LIMITS } from '../../shared/limits.ts'
import { TRANSFER_HEADER } from '../../shared/protocol.ts'
import { archive, checkArchive } from './archive.ts'
import { validate } from './input.ts'
import { pathHeader, resolvePath } from './paths.ts'
import { CHUNK_BYTES, exactChunks, exactStream, type OpenFile, openForReading, readWhole } from './read.ts'
import type { FileDeps } from './routes.ts'

type Content = {
  headers: Record<string, string>
  /** Small enough for the answer itself, or to be streamed: into the answer, or chunk by chunk beside the tunnel. */
  body: Buffer | { inAnswer(): Readable; beside(): AsyncIterable<Buffer> }
}

/**
 * Answers with the bytes. When the coordinator offers a connection of its own (TRANSFER_HEADER), only a small file
 * is in the answer; anything else is an empty answer that repeats the header, while the body is on its way there.
 */
export async function download(request: FastifyRequest, reply: FastifyReply, deps: FileDeps) {
  const file = await openForReading(resolvePath(deps.home, validate(pathQuery, request.query).path))
  const { headers, body } = await content(file).catch(async (error) => {
    await file.handle.close()
    throw error
  })
  const id = request.headers[TRANSFER_HEADER]
  if (Buffer.isBuffer(body)) return reply.headers(headers).send(body)
  if (typeof id !== 'string') {
    const stream = body.inAnswer()
    breakOnError(stream, request)
    return reply.headers(headers).send(stream)
  }
  deps.transfers
    .bring(id, headers, body.beside())
    .catch((err) => deps.log.warn({ err, path: file.path }, 'the download broke off'))
    .finally(() => file.handle.close())
  return reply.header(TRANSFER_HEADER, id).send('')
}

async function content({ path, handle, stat }: OpenFile): Promise<Content> {
  if (stat.isDirectory()) {
    await checkArchive(path, LIMITS.transferBytes)
    await handle.close()
    const chunks = () => archive(path, LIMITS.transferBytes)
    const body = {
      inAnswer: () => Readable.from(chunks(), { objectMode: false, highWaterMark: CHUNK_BYTES }),
      beside: chunks,
    }
    const headers = { 'content-type': 'application/x-tar', [CONTENT_HEADER]: 'directory' }
    return { headers: { ...headers, [PATH_HEADER]: pathHeader(path) }, body }
  }
  if (stat.size > LIMITS.transferBytes)
    throw new ApiError('payload_too_large', `${path} is larger than 1 GiB.`)
  const headers = (length: number) => ({
    'content-type': 'application/octet-stream',
    'content-length': String(length),
    [PATH_HEADER]: pathHeader(path),
  })
  if (stat.size > TUNNEL_LIMITS.inlineBodyBytes) {
    const body = {
      inAnswer: () => exactStream(handle, stat.size, path),
      beside: () => exactChunks(handle, stat.size, path),
    }
    return { headers: headers(stat.size), body }
  }
  const bytes = await readWhole(handle, stat.size, LIMITS.inlineFileBytes)
  if (bytes === null) throw new ApiError('exec_failed', `${path} grows faster than it can be read.`)
  await handle.close()
  return { headers: headers(bytes.length), body: bytes }
}

/**
 * HTTP/2 ends a destroyed answer with NO_ERROR, which a client takes for its regular end: a tar without a length
 * would be silently short.
 */
function breakOnError(body: Readable, request: FastifyRequest): void {
  body.once('error', (error) => {
    if ('stream' in request.raw) (request.raw.stream as { destroy(error: Error): void }).destroy(error)
  })
}
