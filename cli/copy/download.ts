// Downloads a file or a directory from a box. Local files change only after the download is complete. Stdout, a device
// and a pipe get the bytes as they arrive.
import { createWriteStream, type Stats } from 'node:fs'
import { chmod, realpath, rename } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import type { EdgeClient } from '../client.ts'
import { CONTENT_DIRECTORY, DOWNLOAD_CONTENT_HEADER, DOWNLOAD_PATH_HEADER } from '../download-headers.ts'
import { CliError, EXIT } from '../exit-codes.ts'
import { sanitize } from '../output.ts'
import { replaceNotFoundMessage } from '../process-messages.ts'
import { extractDirectory } from './extract-directory.ts'
import { statIfExists, toLocalFileError, withTempPath } from './local-files.ts'
import { getDownloadName, isContentsPath } from './paths.ts'
import { withProgressBar } from './progress-bar.ts'

/** `from` is the real path on the box, `to` the local path, `size` the number of bytes received. */
export type DownloadResult = { from: string; to: string; size: number }

/** Copies `path` on the box to the local `target`, or into `target` if that is a directory. */
export async function download(
  edge: EdgeClient,
  path: string,
  target: string,
  signal: AbortSignal,
): Promise<DownloadResult> {
  const { response, from, isDirectory, length } = await openDownload(edge, path)
  let size = 0
  const countBytes = async function* (): AsyncGenerator<Buffer, void, undefined> {
    for await (const chunk of response) {
      size += chunk.length
      yield chunk
    }
  }
  let to = target
  try {
    const name = getDownloadName(path, from)
    const targetStats = await statIfExists(target)
    const isIntoDirectory = targetStats?.isDirectory() && !(isDirectory && isContentsPath(path))
    if (isIntoDirectory) to = join(target, name)
    const save = isDirectory ? extractDirectory : saveFile
    const bytes = withProgressBar(countBytes(), sanitize(name), length)
    await save(bytes, to, isIntoDirectory ? await statIfExists(to) : targetStats)
    return { from, to, size }
  } catch (error) {
    throw signal.aborted ? signal.reason : toLocalFileError(toTransferError(error), to)
  } finally {
    response.destroy()
  }
}

/** Writes to stdout; a directory as a tar archive. */
export async function downloadToStdout(edge: EdgeClient, path: string, signal: AbortSignal): Promise<void> {
  const { response } = await openDownload(edge, path)
  await pipeline(response, process.stdout, { signal, end: false }).catch((error) => {
    throw signal.aborted ? signal.reason : toTransferError(error)
  })
}

async function openDownload(edge: EdgeClient, path: string) {
  const requestedPath = path === '' ? '~' : path
  const response = await replaceNotFoundMessage(
    edge.send('GET', '/download', { path: requestedPath }),
    `${sanitize(requestedPath)}: no such file or directory on ${edge.boxName}.`,
  )
  const pathHeader = response.headers[DOWNLOAD_PATH_HEADER]
  const isDirectory = response.headers[DOWNLOAD_CONTENT_HEADER] === CONTENT_DIRECTORY
  const length = isDirectory ? null : Number(response.headers['content-length'])
  const from = decodePath(typeof pathHeader === 'string' ? pathHeader : path)
  return { response, from, isDirectory, length }
}

/** Non-ASCII paths are percent-encoded. */
function decodePath(header: string): string {
  try {
    return decodeURIComponent(header)
  } catch {
    return header
  }
}

async function saveFile(bytes: AsyncIterable<Buffer>, path: string, existing: Stats | null): Promise<void> {
  if (existing?.isDirectory())
    throw new CliError(
      EXIT.failed,
      `Cannot replace ${sanitize(path)} by a file: it is a directory on this machine. Choose another destination.`,
    )
  if (existing === null && path.endsWith('/'))
    throw new CliError(EXIT.notFound, `${sanitize(path)}: no such directory on this machine.`)
  // Write to a device or a pipe; do not replace it by a file.
  if (existing !== null && !existing.isFile()) return pipeline(bytes, createWriteStream(path))
  const finalPath = existing === null ? path : await realpath(path)
  await withTempPath(dirname(finalPath), async (tempPath) => {
    await pipeline(bytes, createWriteStream(tempPath, { flags: 'wx', flush: true }))
    if (existing !== null) await chmod(tempPath, existing.mode & 0o7777)
    await rename(tempPath, finalPath)
  })
}

/** Replaces the error of a lost connection. Errors of local files have other codes, or a path. */
function toTransferError(error: unknown): unknown {
  if (!(error instanceof Error) || !('code' in error) || 'path' in error) return error
  if (error.code !== 'ECONNRESET' && error.code !== 'ERR_STREAM_PREMATURE_CLOSE') return error
  return new CliError(EXIT.unreachable, 'The transfer was interrupted. Run the command again.', {
    cause: error,
  })
}
