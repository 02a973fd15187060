// Sources on a box: GET /download, in several ranges for a file of more than 1 GiB, and tar for such a directory.
import type { IncomingMessage } from 'node:http'
import { Readable } from 'node:stream'
import { LIMITS } from '../../shared/limits.ts'
import { shellQuote } from '../../shared/shell-quote.ts'
import type { EdgeClient } from '../connection/client.ts'
import { CliError, EXIT } from '../output/exit-codes.ts'
import { sanitize } from '../output/print.ts'
import { type CommandContext, openOutput } from './box-command.ts'
import { toBoxError } from './box-errors.ts'
import type { Content, Totals } from './content.ts'
import { type DownloadHeaders, parseDownloadHeaders } from './download-headers.ts'
import { formatBoxPath, getDownloadName, isContentsPath, toCommandArgument } from './paths.ts'

/** `realPath` is null for a directory of more than 1 GiB. `close` stops the transfer. */
export type BoxSource = {
  content: Content
  totals: Totals | null
  realPath: string | null
  close(): void
}

/** Starts the transfer. @throws CliError */
export async function openBoxSource(context: CommandContext, path: string): Promise<BoxSource> {
  const { edge, progress } = context
  const requested = { edge, path: path === '' ? '~' : path }
  const response = await sendDownload(requested, {}).catch(async (error) => {
    if (!isTooLarge(error)) throw error
    return sendDownload(requested, firstRange()).catch((rangeError) => {
      if (!isTooLarge(rangeError)) throw rangeError
      return null
    })
  })
  // Without a response, the path is a directory that is too large for a range.
  if (response === null) return openLargeDirectory(context, path)
  const headers = parseDownloadHeaders(response)
  const { path: realPath, mode } = headers
  const name = getDownloadName(path, edge.hostname ?? edge.boxName)
  const close = () => void response.destroy()
  if (!headers.isDirectory) {
    const size = getFileSize(response)
    const content: Content = {
      type: 'file',
      name,
      size,
      mode,
      mtime: headers.mtime,
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
  const archive = withTransferErrors(response)
  const directoryName = isContentsPath(path) ? '' : name
  return { content: { type: 'directory', name: directoryName, mode, archive }, totals, realPath, close }
}

/** The size of a source, for the progress. Null if it is not known without a transfer. */
export async function measureBoxSource(edge: EdgeClient, path: string): Promise<Totals | null> {
  const response = await edge.send('HEAD', '/download', { path: path === '' ? '~' : path })
  response.resume()
  const { isDirectory, files, bytes } = parseDownloadHeaders(response)
  if (!isDirectory) return { files: 1, bytes: getFileSize(response) }
  return files === null || bytes === null ? null : { files, bytes }
}

type RequestedPath = { edge: EdgeClient; path: string }

const sendDownload = ({ edge, path }: RequestedPath, headers: Record<string, string>) =>
  edge.send('GET', '/download', { path }, null, headers).catch((error) => {
    throw error instanceof CliError && error.code === 'not_found'
      ? new CliError(EXIT.notFound, `${sanitize(path)}: no such file or directory on ${edge.boxName}.`, {
          code: 'not_found',
        })
      : toBoxError(edge, error)
  })

const isTooLarge = (error: unknown): boolean =>
  error instanceof CliError && error.code === 'payload_too_large'

const firstRange = () => ({ range: `bytes=0-${LIMITS.transferBytes - 1}` })

/** Returns the size of the whole file in bytes. */
function getFileSize({ headers }: IncomingMessage): number {
  const size = Number(/\/(\d{1,15})$/.exec(headers['content-range'] ?? '')?.[1] ?? headers['content-length'])
  if (!Number.isSafeInteger(size))
    throw new CliError(
      EXIT.failed,
      'The response to the download has no length. Check that no proxy changes the response.',
    )
  return size
}

/** The first call reads the response that is already open. */
function createOpener(
  requested: RequestedPath,
  response: IncomingMessage,
  { entityTag }: DownloadHeaders,
  size: number,
): () => Promise<Readable> {
  let isUsed = false
  const isRanged = response.statusCode === 206
  return async () => {
    const first = isUsed ? await sendDownload(requested, isRanged ? firstRange() : {}) : response
    isUsed = true
    const bytes = isRanged ? readRanges(requested, first, entityTag, size) : first
    return Readable.from(withTransferErrors(bytes), { objectMode: false })
  }
}

/** Yields the first response, then requests the other ranges. A file that changes meanwhile is an error. */
async function* readRanges(
  requested: RequestedPath,
  first: IncomingMessage,
  entityTag: string | null,
  size: number,
): AsyncGenerator<Buffer, void, undefined> {
  let position = 0
  for (let response = first; ; ) {
    for await (const chunk of response) {
      position += chunk.length
      yield chunk
    }
    if (position >= size) return
    const end = Math.min(position + LIMITS.transferBytes, size) - 1
    response = await sendDownload(requested, {
      range: `bytes=${position}-${end}`,
      'if-range': entityTag ?? '""',
    })
    if (response.headers['content-range'] !== `bytes ${position}-${end}/${size}`) {
      response.destroy()
      throw new CliError(
        EXIT.failed,
        `${formatBoxPath(requested.edge.boxName, requested.path)} changed during the copy. Copy it again.`,
      )
    }
  }
}

async function openLargeDirectory(context: CommandContext, path: string): Promise<BoxSource> {
  const { edge } = context
  const command = `tar -C ${shellQuote(toCommandArgument(path))} -cf - .`
  const output = await openOutput(context, command)
  const name = isContentsPath(path) ? '' : getDownloadName(path, edge.hostname ?? edge.boxName)
  return {
    content: { type: 'directory', name, mode: null, archive: output },
    totals: null,
    realPath: null,
    close: () => void output.destroy(),
  }
}

/** An interrupted connection becomes a CliError. */
async function* withTransferErrors(source: AsyncIterable<Buffer>): AsyncGenerator<Buffer, void, undefined> {
  try {
    yield* source
  } catch (error) {
    if (!(error instanceof Error && 'code' in error) || error instanceof CliError) throw error
    throw new CliError(EXIT.unreachable, 'The transfer was interrupted. Run the command again.', {
      cause: error,
    })
  }
}
