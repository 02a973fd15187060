// GET /download: a file as raw bytes or a directory as a tar archive, over a dial-back connection.
import type { Stats } from 'node:fs'
import type { IncomingHttpHeaders } from 'node:http'
import { type DownloadHead, pathQuerySchema } from '../../shared/api/files.ts'
import {
  CONTENT_DIRECTORY,
  DOWNLOAD_CONTENT_HEADER,
  DOWNLOAD_COUNT_HEADERS,
  DOWNLOAD_MODE_HEADER,
  DOWNLOAD_MTIME_HEADER,
  DOWNLOAD_PATH_HEADER,
} from '../../shared/download-headers.ts'
import { ApiError } from '../../shared/errors.ts'
import { LIMITS } from '../../shared/limits.ts'
import { DIAL_BACK_HEADER } from '../../shared/protocol.ts'
import { EMPTY_RESPONSE, type JsonRequest } from '../requests/json-routes.ts'
import { validateRequest } from '../validate-request.ts'
import { archiveDirectory, checkArchivable } from './archive.ts'
import { createEntityTag, selectContent } from './conditional.ts'
import type { FileDeps } from './deps.ts'
import { encodePathHeader, PATH_ERROR_CODES, resolvePath } from './paths.ts'
import {
  checkEnd,
  checkFirstByte,
  type OpenFile,
  openForReading,
  type ReadLimits,
  readChunks,
  readEntireFile,
  SMALL_FILE_BYTES,
} from './read.ts'

type Content = DownloadHead & {
  /** Valid until the next chunk is requested. Leaves the file open. */
  chunks(): AsyncIterable<Buffer>
}

/**
 * Sends the content with its headers over the dial-back connection of DIAL_BACK_HEADER, and responds with EMPTY_RESPONSE.
 * Without such a connection, and for content that the client has already, responds with the head.
 */
export async function download(
  { query, headers: requestHeaders }: Pick<JsonRequest, 'query' | 'headers'>,
  deps: FileDeps,
  limits: ReadLimits,
): Promise<DownloadHead | Buffer> {
  const { path } = validateRequest(pathQuerySchema, query, { root: 'query', codes: PATH_ERROR_CODES })
  const file = await openForReading(resolvePath(deps.home, path), limits)
  const transferId = requestHeaders[DIAL_BACK_HEADER]
  let isSending = false
  try {
    const { status, headers, chunks } = await readContent(file, limits, requestHeaders)
    if (typeof transferId !== 'string' || status === 304) return { status, headers }
    isSending = true
    deps.transferDialer
      .send(transferId, headers, chunks())
      .catch((err) => deps.log.warn({ err, path: file.path }, 'download transfer failed'))
      .finally(() => file.handle.close())
    return EMPTY_RESPONSE
  } finally {
    if (!isSending) await file.handle.close()
  }
}

async function readContent(
  file: OpenFile,
  limits: ReadLimits,
  conditions: IncomingHttpHeaders,
): Promise<Content> {
  if (file.stat.isDirectory()) return readDirectory(file, limits)
  return file.stat.size > SMALL_FILE_BYTES ? readLargeFile(file, conditions) : readSmallFile(file, conditions)
}

async function readDirectory({ path, stat }: OpenFile, limits: ReadLimits): Promise<Content> {
  const { files, bytes, skipped } = await checkArchivable(path, LIMITS.transferBytes, limits)
  const headers = {
    'content-type': 'application/x-tar',
    [DOWNLOAD_CONTENT_HEADER]: CONTENT_DIRECTORY,
    ...createMetadataHeaders(path, stat),
    [DOWNLOAD_COUNT_HEADERS.files]: String(files),
    [DOWNLOAD_COUNT_HEADERS.bytes]: String(bytes),
    [DOWNLOAD_COUNT_HEADERS.skipped]: String(skipped),
  }
  return { status: 200, headers, chunks: () => archiveDirectory(path, LIMITS.transferBytes, limits) }
}

async function readLargeFile(file: OpenFile, conditions: IncomingHttpHeaders): Promise<Content> {
  const { path, handle, stat } = file
  const entityTag = createEntityTag(stat)
  const { status, headers, start, length } = selectFileContent(conditions, path, stat, entityTag, stat.size)
  if (length > LIMITS.transferBytes)
    throw new ApiError('payload_too_large', `${path} is larger than 1 GiB. Download it in ranges.`)
  if (status !== 304) {
    await checkFirstByte(file, start)
    await checkEnd(file)
  }
  return { status, headers, chunks: () => readChunks(handle, length, path, start) }
}

async function readSmallFile(file: OpenFile, conditions: IncomingHttpHeaders): Promise<Content> {
  const { path, stat } = file
  const bytes = await readEntireFile(file, LIMITS.inlineFileBytes)
  if (bytes === null)
    throw new ApiError(
      'exec_failed',
      `${path} grows faster than it can be read. Copy the file on the box and download the copy.`,
    )
  // The reported size of a file in /proc is wrong, and its content changes without its ctime.
  const entityTag = bytes.length === stat.size && stat.size > 0 ? createEntityTag(stat) : null
  const { status, headers, start, length } = selectFileContent(
    conditions,
    path,
    stat,
    entityTag,
    bytes.length,
  )
  return { status, headers, chunks: () => toChunks(bytes.subarray(start, start + length)) }
}

async function* toChunks(bytes: Buffer) {
  if (bytes.length > 0) yield bytes
}

type FileContent = DownloadHead & { start: number; length: number }

/** Throws range_not_satisfiable. */
function selectFileContent(
  { range, 'if-range': ifRange, 'if-none-match': ifNoneMatch }: IncomingHttpHeaders,
  path: string,
  stat: Stats,
  entityTag: string | null,
  size: number,
): FileContent {
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
        fields: { size },
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
