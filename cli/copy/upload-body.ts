// Sends one body to PUT /upload: a file's content or the tar of a directory.
import { dirname } from 'node:path'
import type { FileUploaded } from '../../shared/api/files.ts'
import { shellQuote } from '../../shared/shell-quote.ts'
import type { EdgeClient } from '../client.ts'
import { CliError, EXIT } from '../exit-codes.ts'
import { type RequestBody, readBody } from '../http-request.ts'
import { sanitize } from '../output.ts'
import { toLocalFileError } from './local-files.ts'
import { toCommandArgument } from './paths.ts'

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
    if (error instanceof CliError && error.code === 'not_found') throw parentError(edge.boxName, path)
    throw toLocalFileError(error)
  }
}

/** For PUT /upload, not_found means that the parent of `path` does not exist on the box, or is not a directory. */
function parentError(boxName: string, path: string): CliError {
  const parent = dirname(path)
  const command = `box exec ${boxName} -- mkdir -p ${shellQuote(toCommandArgument(parent))}`
  return new CliError(
    EXIT.notFound,
    `Cannot create ${sanitize(path)} on ${boxName}: ${sanitize(parent)} is not a directory. If it does not exist, create it with \`${sanitize(command)}\`.`,
    { code: 'not_found' },
  )
}

export function tooLargeError(source: string): CliError {
  return new CliError(
    EXIT.failed,
    `${source} is larger than 1 GiB, the limit for one copy. Split it into smaller files.`,
  )
}
