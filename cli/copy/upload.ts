// Uploads a file, a directory or stdin to a box.
import { createReadStream } from 'node:fs'
import { Readable } from 'node:stream'
import { LIMITS } from '../../shared/limits.ts'
import type { EdgeClient } from '../client.ts'
import { CliError, EXIT } from '../exit-codes.ts'
import type { RequestBody } from '../http-request.ts'
import { sanitize } from '../output.ts'
import { statIfExists, withReadErrors } from './local-files.ts'
import { getLocalName, isContentsPath, isDirectoryPath } from './paths.ts'
import { withProgressBar } from './progress-bar.ts'
import { tooLargeError, type UploadResult, uploadBody } from './upload-body.ts'
import { uploadDirectory } from './upload-directory.ts'

const CHUNK_BYTES = 512 * 1024

/** Copies the local file or directory at `source` to `path` on the box. */
export async function upload(edge: EdgeClient, source: string, path: string): Promise<UploadResult> {
  const stats = await statIfExists(source)
  if (stats === null)
    throw new CliError(EXIT.notFound, `${source}: no such file or directory on this machine.`)
  if (stats.isDirectory()) {
    return uploadDirectory(edge, source, path, isContentsPath(source) ? '' : getLocalName(source))
  }
  if (stats.size > LIMITS.transferBytes) throw tooLargeError(source)
  const length = stats.isFile() ? stats.size : null
  const mode = (stats.mode & 0o777).toString(8).padStart(4, '0')
  const createBody = () => createFileBody(source, length)
  const joinName = (directory: string) => `${directory.replace(/\/*$/, '')}/${getLocalName(source)}`
  if (isDirectoryPath(path))
    return uploadBody(edge, path === '' ? getLocalName(source) : joinName(path), mode, createBody)
  try {
    return await uploadBody(edge, path, mode, createBody)
  } catch (error) {
    // invalid_path: `path` is a directory. Then the file goes into it, as for cp.
    if (!(error instanceof CliError) || error.code !== 'invalid_path') throw error
    return uploadBody(edge, joinName(path), mode, createBody)
  }
}

function createFileBody(source: string, length: number | null): RequestBody {
  if (length === 0) return Buffer.alloc(0)
  const bytes = length === null ? createReadStream(source) : readExactly(source, length)
  const label = sanitize(getLocalName(source))
  const body = withProgressBar(withReadErrors(bytes, source), label, length)
  return { stream: Readable.from(body, { objectMode: false }), length }
}

/** Reads the first `length` bytes: bytes appended during the upload are ignored, a file that shrinks is an error. */
async function* readExactly(source: string, length: number): AsyncGenerator<Buffer, void, undefined> {
  let bytesRead = 0
  for await (const chunk of createReadStream(source, { end: length - 1, highWaterMark: CHUNK_BYTES })) {
    bytesRead += chunk.length
    yield chunk
  }
  if (bytesRead < length)
    throw new CliError(EXIT.failed, `${source} became shorter during the upload. Copy it again.`)
}

/** Copies stdin, whatever its length, to the file `path` on the box. */
export async function uploadStdin(edge: EdgeClient, path: string): Promise<UploadResult> {
  if (isDirectoryPath(path))
    throw new CliError(EXIT.usage, 'stdin has no file name. Add one to the destination: BOX:PATH/FILE.')
  return uploadBody(edge, path, null, () => {
    if (process.stdin.readableDidRead)
      throw new CliError(
        EXIT.failed,
        'The coordinator limited the request rate, and stdin cannot be read again. Run the command again.',
      )
    return { stream: process.stdin, length: null }
  })
}
