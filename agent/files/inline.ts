// GET and PUT /files: the content of small files inside JSON.
import {
  type FileRead,
  type FileWritten,
  parseFileMode,
  pathQuerySchema,
  type WriteFileRequest,
  writeFileRequestSchema,
} from '../../shared/api/files.ts'
import { ApiError } from '../../shared/errors.ts'
import { LIMITS } from '../../shared/limits.ts'
import { validateRequest } from '../validate-request.ts'
import { PATH_ERROR_CODES, resolvePath } from './paths.ts'
import { openForReading, type ReadLimits, readEntireFile } from './read.ts'
import { type WriteDeps, writeFile } from './write.ts'

/** Reads a file of at most 1 MiB. Content that is not valid UTF-8 is base64-encoded. */
export async function readInlineFile(query: unknown, home: string, limits: ReadLimits): Promise<FileRead> {
  const requestedPath = resolvePath(
    home,
    validateRequest(pathQuerySchema, query, { root: 'query', codes: PATH_ERROR_CODES }).path,
  )
  const file = await openForReading(requestedPath, limits)
  const { path, handle, stat } = file
  try {
    if (stat.isDirectory())
      throw new ApiError(
        'invalid_path',
        `${path} is a directory. Use GET /download to get it as a tar archive.`,
      )
    const bytes =
      stat.size > LIMITS.inlineFileBytes ? null : await readEntireFile(file, LIMITS.inlineFileBytes)
    if (bytes === null) {
      throw new ApiError('payload_too_large', `${path} is larger than 1 MiB. Use GET /download.`)
    }
    const mode = (stat.mode & 0o7777).toString(8).padStart(4, '0')
    return { ok: true, type: 'file.read', path, size: bytes.length, mode, ...encodeContent(bytes) }
  } finally {
    await handle.close()
  }
}

/** Writes at most 1 MiB of content. Content that cannot be decoded is `invalid_request`. */
export async function writeInlineFile(body: unknown, deps: WriteDeps): Promise<FileWritten> {
  const request = validateRequest(writeFileRequestSchema, body, { codes: PATH_ERROR_CODES })
  const path = resolvePath(deps.home, request.path)
  const bytes = decodeContent(request)
  const limit = LIMITS.inlineFileBytes
  if (bytes.length > limit) {
    throw new ApiError(
      'payload_too_large',
      'The content is larger than 1 MiB. Use PUT /upload, which accepts up to 1 GiB.',
    )
  }
  const mode = request.mode === undefined ? undefined : parseFileMode(request.mode)
  const written = await writeFile({ path, body: toChunks(bytes), length: bytes.length, limit, mode }, deps)
  return { ok: true, type: 'file.written', ...written }
}

async function* toChunks(bytes: Buffer) {
  yield bytes
}

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

function encodeContent(bytes: Buffer): Pick<FileRead, 'encoding' | 'content'> {
  try {
    return { encoding: 'utf8', content: utf8.decode(bytes) }
  } catch {
    return { encoding: 'base64', content: bytes.toString('base64') }
  }
}

function decodeContent({ content, encoding }: WriteFileRequest): Buffer {
  if (encoding === 'base64') {
    // Line breaks, as the base64 command writes them, are accepted. Buffer.from silently ignores other invalid characters.
    const text = content.replace(/\s+/g, '')
    if (text.length % 4 === 0 && /^[A-Za-z0-9+/]*={0,2}$/.test(text)) return Buffer.from(text, 'base64')
    throw new ApiError('invalid_request', 'content is not valid base64.')
  }
  if (content.isWellFormed()) return Buffer.from(content)
  throw new ApiError('invalid_request', 'content contains an unpaired surrogate, which UTF-8 cannot encode.')
}
