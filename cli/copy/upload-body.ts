// Sends one body to PUT /upload: a file's content or the tar of a directory.
import type { FileUploaded } from '../../shared/api/files.ts'
import type { EdgeClient } from '../client.ts'
import { CliError, EXIT } from '../exit-codes.ts'
import { type RequestBody, readBody } from '../http-request.ts'
import { toLocalFileError } from './local-files.ts'

/** `path` is the real path on the box, `size` in bytes. */
export type UploadResult = { path: string; size: number }

/** @param mode octal, such as 0644; null for the box's default */
export async function uploadBody(
  edge: EdgeClient,
  path: string,
  mode: string | null,
  createBody: () => RequestBody,
): Promise<UploadResult> {
  const query = { path, ...(mode !== null && { mode }) }
  try {
    const response = await edge.send('PUT', '/upload', query, createBody)
    const { path: realPath, size } = JSON.parse((await readBody(response)).toString()) as FileUploaded
    return { path: realPath, size }
  } catch (error) {
    throw toLocalFileError(error)
  }
}

export function tooLargeError(source: string): CliError {
  return new CliError(EXIT.failed, `${source} is larger than 1 GiB, the limit for one copy.`)
}
