// GET /download: a file as raw bytes or a directory as a tar archive, in the response or over a dial-back connection.
import type { Stats } from 'node:fs'
import { Readable } from 'node:stream'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { pathQuerySchema } from '../../shared/api/files.ts'
import {
  CONTENT_DIRECTORY,
  DOWNLOAD_CONTENT_HEADER,
  DOWNLOAD_COUNT_HEADERS,
  DOWNLOAD_MODE_HEADER,
  DOWNLOAD_MTIME_HEADER,
  DOWNLOAD_PATH_HEADER,
} from '../../shared/download-headers.ts'
import { ApiError } from '../../shared/errors.ts'
import { LIMITS, TUNNEL_LIMITS } from '../../shared/limits.ts'
import { DIAL_BACK_HEADER } from '../../shared/protocol.ts'
import { validateRequest } from '../validate-request.ts'
import { archiveDirectory, checkArchivable } from './archive.ts'
import { createEntityTag, selectContent } from './conditional.ts'
import type { FileDeps } from './deps.ts'
import { encodePathHeader, PATH_ERROR_CODES, resolvePath } from './paths.ts'
import {
  CHUNK_BYTES,
  checkFirstByte,
  createFixedLengthStream,
  type OpenFile,
  openForReading,
  type ReadLimits,
  readChunks,
  readEntireFile,
} from './read.ts'

type Content = {
  status: 200 | 206 | 304
  headers: Record<string, string>
  /** A Buffer is small enough for the response. Larger content is streamed: as a response, or as transfer chunks. */
  body: Buffer | { createStream(): Readable; chunks(): AsyncIterable<Buffer> }
}

/**
 * Responds with the content, or with its headers for HEAD. When the request has DIAL_BACK_HEADER, the coordinator accepts
 * a dial-back connection: only a small file is then sent in the response. Anything else gets an empty response that
 * repeats the header, and the body is sent over the dial-back connection.
 */
export async function download(
  request: FastifyRequest,
  reply: FastifyReply,
  deps: FileDeps,
  limits: ReadLimits,
) {
  const file = await openForReading(
    resolvePath(
      deps.home,
      validateRequest(pathQuerySchema, request.query, { root: 'query', codes: PATH_ERROR_CODES }).path,
    ),
    limits,
  )
  const { status, headers, body } = await readContent(file, limits, request).catch(async (error) => {
    await file.handle.close()
    throw error
  })
  const transferId = request.headers[DIAL_BACK_HEADER]
  if (request.method === 'HEAD') {
    await file.handle.close()
    return reply.code(status).headers(headers).send()
  }
  if (Buffer.isBuffer(body)) return reply.code(status).headers(headers).send(body)
  if (typeof transferId !== 'string') {
    const stream = body.createStream()
    resetOnError(stream, request)
    return reply.code(status).headers(headers).send(stream)
  }
  deps.transferDialer
    .send(transferId, headers, body.chunks())
    .catch((err) => deps.log.warn({ err, path: file.path }, 'download transfer failed'))
    .finally(() => file.handle.close())
  return reply.header(DIAL_BACK_HEADER, transferId).send('')
}

async function readContent(file: OpenFile, limits: ReadLimits, request: FastifyRequest): Promise<Content> {
  if (file.stat.isDirectory()) return readDirectory(file, limits)
  return file.stat.size > TUNNEL_LIMITS.inlineBodyBytes
    ? readLargeFile(file, request)
    : readSmallFile(file, request)
}

async function readDirectory({ path, handle, stat }: OpenFile, limits: ReadLimits): Promise<Content> {
  const { files, bytes, skipped } = await checkArchivable(path, LIMITS.transferBytes, limits)
  await handle.close()
  const chunks = () => archiveDirectory(path, LIMITS.transferBytes, limits)
  const body = {
    createStream: () => Readable.from(chunks(), { objectMode: false, highWaterMark: CHUNK_BYTES }),
    chunks,
  }
  const headers = {
    'content-type': 'application/x-tar',
    [DOWNLOAD_CONTENT_HEADER]: CONTENT_DIRECTORY,
    ...createMetadataHeaders(path, stat),
    [DOWNLOAD_COUNT_HEADERS.files]: String(files),
    [DOWNLOAD_COUNT_HEADERS.bytes]: String(bytes),
    [DOWNLOAD_COUNT_HEADERS.skipped]: String(skipped),
  }
  return { status: 200, headers, body }
}

async function readLargeFile(file: OpenFile, request: FastifyRequest): Promise<Content> {
  const { path, handle, stat } = file
  const entityTag = createEntityTag(stat)
  const { status, headers, start, length } = selectFileContent(request, path, stat, entityTag, stat.size)
  if (length > LIMITS.transferBytes)
    throw new ApiError('payload_too_large', `${path} is larger than 1 GiB. Download it in ranges.`)
  if (status === 304) {
    await handle.close()
    return { status, headers, body: Buffer.alloc(0) }
  }
  await checkFirstByte(file, start)
  const body = {
    createStream: () => createFixedLengthStream(handle, length, path, start),
    chunks: () => readChunks(handle, length, path, start),
  }
  return { status, headers, body }
}

async function readSmallFile(file: OpenFile, request: FastifyRequest): Promise<Content> {
  const { path, handle, stat } = file
  const bytes = await readEntireFile(file, LIMITS.inlineFileBytes)
  if (bytes === null)
    throw new ApiError(
      'exec_failed',
      `${path} grows faster than it can be read. Copy the file on the box and download the copy.`,
    )
  await handle.close()
  // The reported size of a file in /proc is wrong, and its content changes without its ctime.
  const entityTag = bytes.length === stat.size && stat.size > 0 ? createEntityTag(stat) : null
  const { status, headers, start, length } = selectFileContent(request, path, stat, entityTag, bytes.length)
  return { status, headers, body: bytes.subarray(start, start + length) }
}

type FileContent = Pick<Content, 'status' | 'headers'> & { start: number; length: number }

/** Throws range_not_satisfiable. */
function selectFileContent(
  { headers: requestHeaders }: FastifyRequest,
  path: string,
  stat: Stats,
  entityTag: string | null,
  size: number,
): FileContent {
  const { range, 'if-range': ifRange, 'if-none-match': ifNoneMatch } = requestHeaders
  const selection = selectContent({ range, ifRange: toText(ifRange), ifNoneMatch }, entityTag, size)
  const headers = {
    'content-type': 'application/octet-stream',
    'accept-ranges': 'bytes',
    ...createMetadataHeaders(path, stat),
    ...(entityTag === null ? {} : { etag: entityTag }),
  }
  switch (selection.kind) {
    case 'not modified':
      return { status: 304, headers, start: 0, length: 0 }
    case 'not satisfiable':
      throw new ApiError('range_not_satisfiable', `${path} has only ${size} bytes.`, {
        headers: { 'content-range': `bytes */${size}` },
      })
    case 'complete':
      return { status: 200, headers: { ...headers, 'content-length': String(size) }, start: 0, length: size }
    case 'part': {
      const { start, length } = selection
      const contentRange = `bytes ${start}-${start + length - 1}/${size}`
      const partHeaders = { 'content-length': String(length), 'content-range': contentRange }
      return { status: 206, headers: { ...headers, ...partHeaders }, start, length }
    }
  }
}

/** `mode` is octal, with the set-user-ID, set-group-ID and sticky bits. `mtime` is in seconds since the epoch. */
const createMetadataHeaders = (path: string, { mode, mtimeMs }: Stats): Record<string, string> => ({
  [DOWNLOAD_PATH_HEADER]: encodePathHeader(path),
  [DOWNLOAD_MODE_HEADER]: (mode & 0o7777).toString(8).padStart(4, '0'),
  [DOWNLOAD_MTIME_HEADER]: (Math.max(0, Math.floor(mtimeMs)) / 1000).toString(),
})

const toText = (header: string | string[] | undefined): string | undefined => header?.toString()

/**
 * Node resets a destroyed HTTP/2 response with NO_ERROR, which clients treat as a normal end: an archive, which has no
 * content-length, would be truncated silently. Destroying the stream with the error resets it with an error code.
 */
function resetOnError(body: Readable, request: FastifyRequest): void {
  body.once('error', (error) => {
    if ('stream' in request.raw) (request.raw.stream as { destroy(error: Error): void }).destroy(error)
  })
}
