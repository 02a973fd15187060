// Reads a tar archive entry by entry, with npm's `tar-stream`, whose names can keep their bytes.
import type { Extract, extract as extractTar, Header } from 'tar-stream'
import { CliError, EXIT } from '../output/exit-codes.ts'
import { decodePath } from './path-bytes.ts'

/** Linux does not accept longer paths. Bounds the memory for names. */
const MAX_PATH_BYTES = 4096

export type ArchiveEntry = {
  /** As in the archive: it may lead anywhere. See path-bytes.ts. */
  name: string
  type: Header['type'] | null
  /** The target of a link; empty for other entries. */
  target: string
  mode: number
  /** Seconds since the epoch. */
  mtime: number
  /** The content of a file. What is not read is skipped. */
  content: AsyncIterable<Uint8Array>
}

/** @throws CliError for a damaged archive, and the errors of `archive` */
export async function* readEntries(
  archive: AsyncIterable<Uint8Array>,
): AsyncGenerator<ArchiveEntry, void, undefined> {
  const { extract } = await import('tar-stream')
  // One character per byte.
  const parser = extract({ filenameEncoding: 'latin1' } as Parameters<typeof extractTar>[0])
  feed(archive, parser).catch((error) => parser.destroy(error))
  try {
    for await (const entry of withDamagedErrors(parser)) {
      const content = withDamagedErrors(entry as unknown as AsyncIterable<Uint8Array>)
      yield { ...parseHeader(entry.header), content }
      entry.resume()
    }
  } finally {
    parser.destroy(null)
  }
}

async function* withDamagedErrors<T>(source: AsyncIterable<T>): AsyncGenerator<T, void, undefined> {
  try {
    yield* source
  } catch (error) {
    throw isParserError(error) ? damagedError(error.message) : error
  }
}

async function feed(archive: AsyncIterable<Uint8Array>, parser: Extract): Promise<void> {
  for await (const chunk of archive) {
    if (!parser.write(chunk)) await waitForDrain(parser)
    if (parser.destroyed) return
  }
  parser.end(undefined)
}

const waitForDrain = (parser: Extract): Promise<void> =>
  new Promise((resolve) => {
    const finish = () => {
      parser.off('drain', finish).off('close', finish)
      resolve()
    }
    parser.on('drain', finish).on('close', finish)
  })

const damagedError = (problem: string): CliError =>
  new CliError(
    EXIT.failed,
    `The archive from the box is damaged: ${problem.replace(/\.$/, '')}. Copy it again.`,
  )

/** Errors of the file system have a code. */
const isParserError = (error: unknown): error is Error =>
  error instanceof Error && !(error instanceof CliError) && !('code' in error)

function parseHeader(header: Header): Omit<ArchiveEntry, 'content'> {
  const { pax } = header as { pax?: Record<string, string> | null }
  const mtime = Number(pax?.mtime ?? Number.NaN)
  return {
    name: decodeName(header.name, pax?.path),
    // Old programs marked a directory only by a slash.
    type: header.type === 'file' && header.name.endsWith('/') ? 'directory' : header.type,
    target: decodeName(header.linkname ?? '', pax?.linkpath),
    mode: header.mode ?? 0,
    mtime: Number.isFinite(mtime) ? mtime : (header.mtime?.getTime() ?? 0) / 1000,
  }
}

/** @param record the name in an extended header, which the parser has decoded as UTF-8 */
function decodeName(bytes: string, record: string | undefined): string {
  const name = record || decodePath(Buffer.from(bytes, 'latin1'))
  if (record?.includes('\uFFFD')) throw damagedError('a name is not UTF-8')
  if (name.includes('\0')) throw damagedError('a name has a zero byte')
  if (Buffer.byteLength(name) > MAX_PATH_BYTES) throw damagedError('a name is too long')
  return name
}
