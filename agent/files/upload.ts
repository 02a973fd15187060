// PUT /upload: writes the raw request body, or a body received over a dial-back connection, to a file.
import type { Http2ServerRequest } from 'node:http2'
import type { FastifyRequest } from 'fastify'
import { type FileUploaded, parseFileMode, uploadQuerySchema } from '../../shared/api/files.ts'
import { ApiError } from '../../shared/errors.ts'
import { LIMITS } from '../../shared/limits.ts'
import { DIAL_BACK_HEADER, TRANSFER_LENGTH_HEADER } from '../../shared/protocol.ts'
import { validateRequest } from '../validate-request.ts'
import { PATH_ERROR_CODES, resolvePath } from './paths.ts'
import type { TransferBody, TransferDialer } from './transfer-dialer.ts'
import { type WriteDeps, writeFile } from './write.ts'

/** `length` is in bytes, null when not declared. `release` closes a dial-back connection, but drains a raw request body. */
type UploadBody = TransferBody & { length: number | null }

/** Writes the body to the path. A body over 1 GiB, of the wrong length or interrupted leaves the file unchanged. */
export async function upload(
  request: FastifyRequest,
  deps: WriteDeps & { transferDialer: TransferDialer },
): Promise<FileUploaded> {
  const query = validateRequest(uploadQuerySchema, request.query, { root: 'query', codes: PATH_ERROR_CODES })
  const path = resolvePath(deps.home, query.path)
  const mode = query.mode === undefined ? undefined : parseFileMode(query.mode)
  const mtime = query.mtime === undefined ? undefined : Number(query.mtime)
  const { chunks, length, release } = await openBody(request, deps.transferDialer)
  try {
    const limit = LIMITS.transferBytes
    if (length !== null && length > limit)
      throw new ApiError('payload_too_large', 'The body is larger than 1 GiB. Split it into several uploads.')
    const written = await writeFile({ path, body: chunks, length, limit, mode, mtime }, deps)
    return { ok: true, type: 'file.uploaded', ...written }
  } finally {
    release()
  }
}

async function openBody(request: FastifyRequest, transferDialer: TransferDialer): Promise<UploadBody> {
  const transferId = request.headers[DIAL_BACK_HEADER]
  if (typeof transferId === 'string') {
    const length = parseTransferLength(request.headers[TRANSFER_LENGTH_HEADER])
    const { chunks, release } = await transferDialer.fetch(transferId, length).catch(throwInterrupted)
    return { chunks: withInterruptedError(chunks), length, release }
  }
  const { raw } = request
  // Drain the unread rest: destroying the request would close the connection before the response is sent.
  const release = () => raw.resume()
  const chunks = withInterruptedError(raw.iterator({ destroyOnReturn: false }))
  return { chunks, length: getDeclaredLength(request), release }
}

/**
 * HTTP/2 requests must declare the length: Node's client ends the body normally before it resets the stream, so an
 * interrupted body would look complete.
 */
function getDeclaredLength({ headers, raw }: FastifyRequest): number | null {
  const declared = headers['content-length']
  if (declared !== undefined) return Number(declared)
  if (raw.httpVersionMajor < 2) return null
  if ((raw as unknown as Http2ServerRequest).stream.endAfterHeaders) return 0
  throw new ApiError(
    'invalid_request',
    'An upload over HTTP/2 needs a Content-Length header. Send the header.',
  )
}

const parseTransferLength = (header: string | string[] | undefined): number | null =>
  typeof header === 'string' && /^\d{1,15}$/.test(header) ? Number(header) : null

async function* withInterruptedError(chunks: AsyncIterable<Buffer>): AsyncGenerator<Buffer, void, undefined> {
  try {
    yield* chunks
  } catch (error) {
    throwInterrupted(error)
  }
}

function throwInterrupted(error: unknown): never {
  if (error instanceof ApiError) throw error
  const reason = error instanceof Error ? error.message : String(error)
  throw new ApiError('box_unreachable', `The upload was interrupted: ${reason}. Try again.`, { cause: error })
}
