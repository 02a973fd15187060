// PUT /upload: writes the body that follows on a dial-back connection to a file.
import { type FileUploaded, parseFileMode, uploadQuerySchema } from '../../shared/api/files.ts'
import { ApiError } from '../../shared/errors.ts'
import { LIMITS } from '../../shared/limits.ts'
import { TRANSFER_LENGTH_HEADER } from '../../shared/protocol.ts'
import { readDialBackId } from '../requests/dial-back-id.ts'
import type { JsonRequest } from '../requests/json-routes.ts'
import { validateRequest } from '../validate-request.ts'
import { PATH_ERROR_CODES, resolvePath } from './paths.ts'
import type { TransferDialer } from './transfer-dialer.ts'
import { type WriteDeps, writeFile } from './write.ts'

/** Writes the body to the path. A body over 1 GiB, of the wrong length or interrupted leaves the file unchanged. */
export async function upload(
  { query: values, headers }: Pick<JsonRequest, 'query' | 'headers'>,
  deps: WriteDeps & { transferDialer: TransferDialer },
): Promise<FileUploaded> {
  const query = validateRequest(uploadQuerySchema, values, { root: 'query', codes: PATH_ERROR_CODES })
  const path = resolvePath(deps.home, query.path)
  const mode = query.mode === undefined ? undefined : parseFileMode(query.mode)
  const mtime = query.mtime === undefined ? undefined : Number(query.mtime)
  const id = readDialBackId(headers)
  const length = parseTransferLength(headers[TRANSFER_LENGTH_HEADER])
  const limit = LIMITS.transferBytes
  if (length !== null && length > limit)
    throw new ApiError('payload_too_large', 'The body is larger than 1 GiB. Split it into several uploads.')
  const { chunks, release } = await deps.transferDialer.fetch(id, length).catch(throwInterrupted)
  try {
    const body = withInterruptedError(chunks)
    const written = await writeFile({ path, body, length, limit, mode, mtime }, deps)
    return { ok: true, type: 'file.uploaded', ...written }
  } finally {
    release()
  }
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
