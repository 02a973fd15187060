// Small files inside JSON: GET and PUT /files.
import {
  type FileRead,
  type FileWritten,
  parseFileMode,
  pathQuery,
  type WriteFileRequest,
  writeFileRequest,
} from '../../shared/api/files.ts'
import { ApiError } from '../../shared/errors.ts'
import { LIMITS } from '../../shared/limits.ts'
import { validate } from './input.ts'
import { resolvePath } from './paths.ts'
import { openForReading, readWhole } from './read.ts'
import { type WriteDeps, writeFile } from './write.ts'

/** Reads a file of at most 1 MiB; base64 when its bytes are not valid UTF-8. */
export async function readFile(query: unknown, { home }: { home: string }): Promise<FileRead> {
  const wanted = resolvePath(home, validate(pathQuery, query).path)
  const { path, handle, stat } = await openForReading(wanted)
  try {
    if (stat.isDirectory())
      throw new ApiError('invalid_path', `${path} is a directory. GET /download gives it as a tar.`)
    const bytes =
      stat.size > LIMITS.inlineFileBytes ? null : await readWhole(handle, stat.size, LIMITS.inlineFileBytes)
    if (bytes === null) {
      throw new ApiError('payload_too_large', `${path} is larger than 1 MiB. GET /download streams it.`)
    }
    const mode = (stat.mode & 0o7777).toString(8).padStart(4, '0')
    return { ok: true, type: 'file.read', path, size: bytes.length, mode, ...encode(bytes) }
  } finally {
    await handle.close()
  }
}

/** Writes at most 1 MiB of content; `invalid_request` for content that its encoding cannot mean. */
export async function writeSmallFile(body: unknown, deps: WriteDeps): Promise<FileWritten> {
  const request = validate(writeFileRequest, body)
  const path = resolvePath(deps.home, request.path)
  const bytes = decode(request)
  const limit = LIMITS.inlineFileBytes
  if (bytes.length > limit) {
    throw new ApiError(
      'payload_too_large',
      'The content is larger than 1 MiB. PUT /upload takes up to 1 GiB.',
    )
  }
  const mode = request.mode === undefined ? undefined : parseFileMode(request.mode)
  const written = await writeFile({ path, body: once(bytes), length: bytes.length, limit, mode }, deps)
  return { ok: true, type: 'file.written', ...written }
}

async function* once(bytes: Buffer) {
  yield bytes
}

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

function encode(bytes: Buffer): Pick<FileRead, 'encoding' | 'content'> {
  try {
    return { encoding: 'utf8', content: utf8.decode(bytes) }
  } catch {
    return { encoding: 'base64', content: bytes.toString('base64') }
  }
}

function decode({ content, encoding }: WriteFileRequest): Buffer {
  if (encoding === 'base64') {
    // Lines, as the base64 command writes them, are fine; anything else Buffer would drop without a word.
    const text = content.replace(/\s+/g, '')
    if (text.length % 4 === 0 && /^[A-Za-z0-9+/]*={0,2}$/.test(text)) return Buffer.from(text, 'base64')
    throw new ApiError('invalid_request', 'content is not base64.')
  }
  if (content.isWellFormed()) return Buffer.from(content)
  throw new ApiError('invalid_request', 'content holds half a surrogate pair, which UTF-8 cannot say.')
}
