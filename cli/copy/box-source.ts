// Sources on a box: GET /download, in several ranges for a file of more than 1 GiB, and tar for such a directory.
import { Readable } from 'node:stream'
import type { OpenResponse, TransportResponse } from '../../client/http/transport.ts'
import { LIMITS } from '../../shared/limits.ts'
import type { EdgeClient } from '../connection/client.ts'
import { CliError, EXIT } from '../output/exit-codes.ts'
import { sanitize } from '../output/print.ts'
import { type CommandContext, openOutput, runOnBox } from './box-command.ts'
import { toBoxError } from './box-errors.ts'
import { createReadScript, createStatScript } from './box-scripts.ts'
import type { Content, Totals } from './content.ts'
import { type DownloadHeaders, parseDownloadHeaders } from './download-headers.ts'
import { formatBoxPath, getDownloadName, isContentsPath, isRequestPath } from './paths.ts'

/** `realPath` is null for a source that a command reads. `close` stops the transfer. */
export type BoxSource = {
  content: Content
  totals: Totals | null
  realPath: string | null
  close(): void
}

/** Starts the transfer. @param title see BoxTarget @throws CliError */
export async function openBoxSource(
  context: CommandContext,
  path: string,
  title: string,
): Promise<BoxSource> {
  const { edge, progress } = context
  if (!isRequestPath(path)) return openByCommand(context, path, title)
  const requested = { edge, path: path === '' ? '~' : path }
  const response = await sendDownload(requested, {}).catch(async (error) => {
    if (isReadFailure(error)) return null
    if (!isTooLarge(error)) throw error
    return sendDownload(requested, firstRange()).catch((rangeError) => {
      if (!isTooLarge(rangeError)) throw rangeError
      return null
    })
  })
  // Without a response, the path is a directory that is too large for a range, or a file of the kernel that is too large for a download.
  if (response === null) return openByCommand(context, path, title)
  const headers = parseDownloadHeaders(response)
  const { path: realPath, mode, mtime } = headers
  const name = getDownloadName(path, edge.hostname ?? edge.boxName)
  const close = () => response.cancel()
  if (!headers.isDirectory) {
    const size = getFileSize(response)
    const content: Content = {
      type: 'file',
      name,
      size,
      mode,
      mtime,
      open: createOpener(requested, response, headers, size),
    }
    return { content, totals: { files: 1, bytes: size }, realPath, close }
  }
  if (headers.skipped)
    progress.print(
      `skipped in ${formatBoxPath(edge.boxName, path)}: FIFOs, sockets or devices (${headers.skipped}).`,
    )
  const { files, bytes } = headers
  const totals = files === null || bytes === null ? null : { files, bytes }
  const archive = withTransferErrors(readBytes(response))
  const directoryName = isContentsPath(path) ? '' : name
  return {
    content: { type: 'directory', name: directoryName, mode, mtime, archive },
    totals,
    realPath,
    close,
  }
}

/** The size of a source, for the progress. Null if it is not known without a transfer. */
export async function measureBoxSource(edge: EdgeClient, path: string): Promise<Totals | null> {
  if (!isRequestPath(path)) return null
  const response = await edge.send('HEAD', '/download', { path: path === '' ? '~' : path })
  const { isDirectory, files, bytes } = parseDownloadHeaders(response)
  if (!isDirectory) return { files: 1, bytes: getFileSize(response) }
  return files === null || bytes === null ? null : { files, bytes }
}

type RequestedPath = { edge: EdgeClient; path: string }

const sendDownload = ({ edge, path }: RequestedPath, headers: Record<string, string>) =>
  edge.send('GET', '/download', { path }, null, headers).catch((error) => {
    throw error instanceof CliError && error.code === 'not_found'
      ? createMissingError(edge, path)
      : toBoxError(edge, error)
  })

async function* readBytes({ body }: OpenResponse): AsyncGenerator<Uint8Array, void, undefined> {
  if (body !== null) yield* body
}

const isTooLarge = (error: unknown): boolean =>
  error instanceof CliError && error.code === 'payload_too_large'

const firstRange = () => ({ range: `bytes=0-${LIMITS.transferBytes - 1}` })

/** Returns the size of the whole file in bytes. */
function getFileSize({ headers }: TransportResponse): number {
  const size = Number(
    /\/(\d{1,15})$/.exec(headers.get('content-range') ?? '')?.[1] ??
      headers.get('content-length') ??
      Number.NaN,
  )
  if (!Number.isSafeInteger(size))
    throw new CliError(
      EXIT.failed,
      'The response to the download has no length. Check that no proxy changes the response.',
    )
  return size
}

/** Also for a large file whose size in stat is 0. A command reports the other reasons itself. */
const isReadFailure = (error: unknown): boolean => error instanceof CliError && error.code === 'exec_failed'

/** The first call reads the response that is already open. */
function createOpener(
  requested: RequestedPath,
  response: OpenResponse,
  { entityTag }: DownloadHeaders,
  size: number,
): () => Promise<Readable> {
  let isUsed = false
  const isRanged = response.status === 206
  return async () => {
    const first = isUsed ? await sendDownload(requested, isRanged ? firstRange() : {}) : response
    isUsed = true
    const bytes = isRanged ? readRanges(requested, first, entityTag, size) : readBytes(first)
    return Readable.from(withTransferErrors(bytes), { objectMode: false })
  }
}

/** Yields the first response, then requests the other ranges. A file that changes meanwhile is an error. */
async function* readRanges(
  requested: RequestedPath,
  first: OpenResponse,
  entityTag: string | null,
  size: number,
): AsyncGenerator<Uint8Array, void, undefined> {
  let position = 0
  for (let response = first; ; ) {
    for await (const chunk of readBytes(response)) {
      position += chunk.length
      yield chunk
    }
    if (position >= size) return
    const end = Math.min(position + LIMITS.transferBytes, size) - 1
    response = await sendDownload(requested, {
      range: `bytes=${position}-${end}`,
      'if-range': entityTag ?? '""',
    })
    if (response.headers.get('content-range') !== `bytes ${position}-${end}/${size}`) {
      response.cancel()
      throw new CliError(
        EXIT.failed,
        `${formatBoxPath(requested.edge.boxName, requested.path)} changed during the copy. Copy it again.`,
      )
    }
  }
}

/** Reads a source of any size and name with a command on the box. */
async function openByCommand(context: CommandContext, path: string, title: string): Promise<BoxSource> {
  const { edge } = context
  const { isDirectory, ...attributes } = await inspect(edge, path, title)
  const output = await openOutput(context, createReadScript(title, path, isDirectory))
  const name = getDownloadName(path, edge.hostname ?? edge.boxName)
  const content: Content = isDirectory
    ? { type: 'directory', name: isContentsPath(path) ? '' : name, ...attributes, archive: output }
    : { type: 'file', name, size: null, ...attributes, open: async () => output }
  return { content, totals: null, realPath: null, close: () => void output.destroy() }
}

const FILE_TYPE_MASK = 0o170000
const DIRECTORY_TYPE = 0o040000
const FILE_TYPE = 0o100000

async function inspect(
  edge: EdgeClient,
  path: string,
  title: string,
): Promise<{ isDirectory: boolean; mode: number; mtime: number }> {
  const stdout = await runOnBox(edge, createStatScript(title, path)).catch((error) => {
    throw error instanceof CliError && error.exitCode === EXIT.failed ? createMissingError(edge, path) : error
  })
  const [, mode = '', mtime = ''] = /^([0-9a-f]{1,8}) (\d{1,11})\n$/.exec(stdout) ?? []
  const bits = Number.parseInt(mode, 16)
  const type = bits & FILE_TYPE_MASK
  if (type !== DIRECTORY_TYPE && type !== FILE_TYPE)
    throw new CliError(EXIT.failed, `${formatBoxPath(edge.boxName, path)} is neither a file nor a directory.`)
  return { isDirectory: type === DIRECTORY_TYPE, mode: bits & 0o777, mtime: Number(mtime) }
}

const createMissingError = (edge: EdgeClient, path: string): CliError =>
  new CliError(EXIT.notFound, `${sanitize(path)}: no such file or directory on ${edge.boxName}.`, {
    code: 'not_found',
  })

/** An interrupted connection becomes a CliError. */
async function* withTransferErrors(
  source: AsyncIterable<Uint8Array>,
): AsyncGenerator<Uint8Array, void, undefined> {
  try {
    yield* source
  } catch (error) {
    if (!(error instanceof Error && 'code' in error) || error instanceof CliError) throw error
    throw new CliError(EXIT.unreachable, 'The transfer was interrupted. Run the command again.', {
      cause: error,
    })
  }
}
