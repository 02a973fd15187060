// PUT /upload: the raw body becomes the file, from the request or from a connection of its own.
import type { Http2ServerRequest } from 'node:http2'
import type { FastifyRequest } from 'fastify'
import { type FileUploaded, parseFileMode, uploadQuery } from '../../shared/api/files.ts'
import { ApiError } from '../../shared/errors.ts'
import { LIMITS } from '../../shared/limits.ts'
import { TRANSFER_HEADER, TRANSFER_LENGTH_HEADER } from '../../shared/protocol.ts'
import { validate } from './input.ts'
import { resolvePath } from './paths.ts'
import type { FetchedBody, TransferDialer } from './transfer.ts'
import { type WriteDeps, writeFile } from './write.ts'

type Body = FetchedBody & { length: number | null }

/** Writes the body to the path; nothing is written when it is over 1 GiB, too short or broken off. */
export async function upload(
  request: FastifyRequest,
  deps: WriteDeps & { transfers: TransferDialer },
): Promise<FileUploaded> {
  const query = validate(uploadQuery, request.query)
  const path = resolvePath(deps.home, query.path)
  const mode = query.mode === undefined ? undefined : parseFileMode(query.mode)
  const { chunks, length, drop } = await bodyOf(request, deps.transfers)
  try {
    const limit = LIMITS.transferBytes
    if (length !== null && length > limit) throw new ApiError('payload_too_large', 'A file is at most 1 GiB.')
    const written = await writeFile({ path, body: chunks, length, limit, mode }, deps)
    return { ok: true, type: 'file.uploaded', ...written }
  } finally {
    drop()
  }
}

async function bodyOf(request: FastifyRequest, transfers: TransferDialer): Promise<Body> {
  const id = request.headers[TRANSFER_HEADER]
  if (typeof id === 'string') {
    const length = transferLength(request.headers[TRANSFER_LENGTH_HEADER])
    const { chunks, drop } = await transfers.fetch(id, length).catch(brokenOff)
    return { chunks: orBrokenOff(chunks), length, drop }
  }
  const { raw } = request
  // What nobody wants any more is read and dropped: destroying it would take the connection and the answer with it.
  const drop = () => raw.resume()
  const chunks = orBrokenOff(raw.iterator({ destroyOnReturn: false }))
  return { chunks, length: declaredLength(request), drop }
}

/**
 * On HTTP/2 the length has to be known: Node's client ends the body regularly before it resets the stream, so one
 * that broke off could not be told from a whole one.
 */
function declaredLength({ headers, raw }: FastifyRequest): number | null {
  const declared = headers['content-length']
  if (declared !== undefined) return Number(declared)
  if (raw.httpVersionMajor < 2) return null
  if ((raw as unknown as Http2ServerRequest).stream.endAfterHeaders) return 0
  throw new ApiError('invalid_request', 'Declare the length of the body.')
}

const transferLength = (header: string | string[] | undefined): number | null =>
  typeof header === 'string' && /^\d{1,15}$/.test(header) ? Number(header) : null

async function* orBrokenOff(chunks: AsyncIterable<Buffer>): AsyncGenerator<Buffer, void, undefined> {
  try {
    yield* chunks
  } catch (error) {
    brokenOff(error)
  }
}

function brokenOff(error: unknown): never {
  if (error instanceof ApiError) throw error
  const words = error instanceof Error ? error.message : String(error)
  throw new ApiError('box_unreachable', `The body broke off: ${words}.`, { cause: error })
}
