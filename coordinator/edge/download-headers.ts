// Headers of a download: the conditions of the client, and what an agent may respond with.
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
import { createAgentProtocolError } from '../agents/tunnel/agent-errors.ts'

type Headers = Record<string, string | string[] | undefined>

/** The headers of a client's request that the agent evaluates. */
const CONDITIONAL_HEADERS = ['range', 'if-range', 'if-none-match'] as const
export type ConditionalHeaders = Partial<Record<(typeof CONDITIONAL_HEADERS)[number], string>>

/** Longer headers are ignored, as HTTP allows. The agent limits the size of all headers. */
const MAX_CONDITIONAL_HEADER_CHARS = 1024

/** The request headers that the agent gets. */
export function selectConditionalHeaders(from: Headers): ConditionalHeaders {
  const entries = CONDITIONAL_HEADERS.map((name) => [name, from[name]] as const).filter(
    (entry): entry is [(typeof CONDITIONAL_HEADERS)[number], string] =>
      typeof entry[1] === 'string' && entry[1].length <= MAX_CONDITIONAL_HEADER_CHARS,
  )
  return Object.fromEntries(entries)
}

type Download = {
  status: 200 | 206
  /** In bytes; null for a directory. */
  length: number | null
  headers: Record<string, string>
}

/** Validates the headers that an agent may set on a download, and drops the others. */
export function checkHeaders(from: Headers, { range }: ConditionalHeaders): Download {
  const isDirectory = from[DOWNLOAD_CONTENT_HEADER] === CONTENT_DIRECTORY
  const path = checkPath(from)
  const headers: Record<string, string> = {
    ...INERT_CONTENT_HEADERS,
    'content-type': isDirectory ? 'application/x-tar' : 'application/octet-stream',
    'content-disposition': describeAttachment(path, isDirectory),
    [DOWNLOAD_PATH_HEADER]: path,
    ...selectValid(from, METADATA_PATTERNS),
  }
  if (isDirectory) {
    const counts = selectValid(from, COUNT_PATTERNS)
    return {
      status: 200,
      length: null,
      headers: { ...headers, ...counts, [DOWNLOAD_CONTENT_HEADER]: CONTENT_DIRECTORY },
    }
  }
  const length = Number(from['content-length'])
  if (!Number.isSafeInteger(length) || length < 0)
    throw createAgentProtocolError('The agent sent no valid file size.')
  if (length > LIMITS.transferBytes)
    throw new ApiError('payload_too_large', 'The file is larger than 1 GiB. Split it on the box.')
  Object.assign(headers, {
    'content-length': String(length),
    'accept-ranges': 'bytes',
    ...checkEntityTag(from),
  })
  const contentRange = from['content-range']
  if (contentRange === undefined) return { status: 200, length, headers }
  if (range === undefined || !isRangeOfLength(contentRange, length))
    throw createAgentProtocolError('The agent sent no valid range.')
  return { status: 206, length, headers: { ...headers, 'content-range': String(contentRange) } }
}

/** No file of a box is shown or run on the origin of the coordinator. */
const INERT_CONTENT_HEADERS = {
  'x-content-type-options': 'nosniff',
  'content-security-policy': 'sandbox',
}

/** @param encodedPath the real path, percent-encoded where it is not printable ASCII */
function describeAttachment(encodedPath: string, isDirectory: boolean): string {
  const name = `${decodePath(encodedPath).replace(/^.*\//s, '') || 'root'}${isDirectory ? '.tar' : ''}`
  const fallback = name.replace(/[^ -~]|["\\%]/gu, '_')
  const encoded = encodeURIComponent(name.toWellFormed()).replace(
    /['()*]/g,
    (character) => `%${character.charCodeAt(0).toString(16)}`,
  )
  return `attachment; filename="${fallback}"; filename*=UTF-8''${encoded}`
}

function decodePath(encoded: string): string {
  try {
    return decodeURIComponent(encoded)
  } catch {
    // An agent may send any text.
    return 'download'
  }
}

const METADATA_PATTERNS = {
  [DOWNLOAD_MODE_HEADER]: /^[0-7]{4}$/,
  [DOWNLOAD_MTIME_HEADER]: /^\d{1,11}(\.\d{1,9})?$/,
}
const COUNT_PATTERNS = Object.fromEntries(
  Object.values(DOWNLOAD_COUNT_HEADERS).map((name) => [name, /^\d{1,15}$/]),
)

/** The headers that match their patterns. The others only lack information, so they are dropped. */
function selectValid(from: Headers, patterns: Record<string, RegExp>): Record<string, string> {
  const entries = Object.entries(patterns).map(([name, pattern]) => [name, from[name], pattern] as const)
  return Object.fromEntries(
    entries.flatMap(([name, value, pattern]) =>
      typeof value === 'string' && pattern.test(value) ? [[name, value]] : [],
    ),
  )
}

export function checkPath({ [DOWNLOAD_PATH_HEADER]: path }: Headers): string {
  if (typeof path === 'string' && /^[\x20-\x7e]{1,16384}$/.test(path)) return path
  throw createAgentProtocolError('The agent sent no valid path.')
}

export function checkEntityTag({ etag }: Headers): { etag?: string } {
  if (etag === undefined) return {}
  if (typeof etag === 'string' && /^"[\x21\x23-\x7e]{1,64}"$/.test(etag)) return { etag }
  throw createAgentProtocolError('The agent sent no valid entity tag.')
}

function isRangeOfLength(contentRange: unknown, length: number): boolean {
  const match = /^bytes (\d{1,15})-(\d{1,15})\/(\d{1,15})$/.exec(String(contentRange))
  if (match === null) return false
  const [start = 0, end = 0, size = 0] = match.slice(1).map(Number)
  return end - start + 1 === length && end < size
}
