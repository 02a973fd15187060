// Sources on this machine: a file, a directory, several of them as one directory, stdin, and pipes that the shell passes.

import { createReadStream, type Stats } from 'node:fs'
import { realpath, stat } from 'node:fs/promises'
import { normalize } from 'node:path'
import { Readable } from 'node:stream'
import { boxCommand } from '../command-name.ts'
import { CliError, EXIT } from '../output/exit-codes.ts'
import { sanitize } from '../output/print.ts'
import type { DirectoryContent, FileContent, Totals } from './content.ts'
import { openPipe } from './descriptors.ts'
import { nullIfMissing, toLocalFileError, withReadErrors } from './local-files.ts'
import { createPackEntry, encodeDirectory, pack, scan } from './pack.ts'
import { getLocalName, isContentsPath } from './paths.ts'
import type { Progress } from './progress.ts'

const CHUNK_BYTES = 512 * 1024

/** A local source that exists. `totals` is null for a pipe. */
export type LocalSource = { path: string; stats: Stats; totals: Totals | null }

/** Counts the files of a source. @throws CliError for a missing source, and for one that cannot be copied */
export async function inspectLocalSource(path: string, progress: Progress): Promise<LocalSource> {
  const stats = await nullIfMissing(stat(path))
  if (stats === null)
    throw new CliError(EXIT.notFound, `${sanitize(path)}: no such file or directory on this machine.`)
  if (stats.isFile()) return { path, stats, totals: { files: 1, bytes: stats.size } }
  if (stats.isDirectory()) {
    const onSkipped = (skipped: string) =>
      progress.print(`${sanitize(normalize(skipped))}: skipped, not a regular file.`)
    try {
      return { path, stats, totals: scan(path, onSkipped) }
    } catch (error) {
      throw toLocalFileError(error)
    }
  }
  if (isPipePath(path)) return { path, stats, totals: null }
  throw new CliError(
    EXIT.failed,
    `${sanitize(path)}: not a regular file. To read from it, use - as the source: ${boxCommand()} cp - … < ${sanitize(path)}`,
  )
}

const isPipePath = (path: string): boolean => /^\/(dev\/(fd\/\d+|stdin)|proc\/self\/fd\/\d+)$/.test(path)

export function openLocalSource({ path, stats }: LocalSource): Promise<FileContent | DirectoryContent> {
  return stats.isDirectory() ? openDirectory(path, stats) : Promise.resolve(openFile(path, stats))
}

function openFile(path: string, stats: Stats): FileContent {
  const { size, mode, mtimeMs } = stats
  const isRegular = stats.isFile()
  return {
    type: 'file',
    name: getLocalName(path),
    size: isRegular ? size : null,
    mode: isRegular ? mode & 0o777 : null,
    mtime: isRegular ? mtimeMs / 1000 : null,
    async open() {
      const pipe = isRegular ? null : openPipe(path, 'read')
      if (pipe !== null) return pipe
      const bytes = isRegular ? readExactly(path, size) : createReadStream(path)
      return Readable.from(withReadErrors(bytes, path), { objectMode: false })
    },
  }
}

async function openDirectory(path: string, { mode }: Stats): Promise<DirectoryContent> {
  return {
    type: 'directory',
    name: isContentsPath(path) ? '' : getLocalName(path),
    mode: mode & 0o777,
    // `path` may be a symbolic link.
    archive: pack([createPackEntry(await realpath(path), TOP_NAME)]),
  }
}

/** The top-level directory of an archive. It has no meaning for the destination. */
const TOP_NAME = 'top'

/** Several sources as one directory whose contents are copied. */
export function openLocalSources(sources: readonly LocalSource[]): DirectoryContent {
  async function* createArchive() {
    yield encodeDirectory(TOP_NAME)
    const entries = sources.map(async ({ path }) =>
      createPackEntry(
        await realpath(path),
        isContentsPath(path) ? TOP_NAME : `${TOP_NAME}/${getLocalName(path)}`,
      ),
    )
    yield* pack(await Promise.all(entries))
  }
  return { type: 'directory', name: '', mode: null, archive: createArchive() }
}

export const openStdin = (): FileContent => ({
  type: 'file',
  name: '',
  size: null,
  mode: null,
  mtime: null,
  open: async () => process.stdin,
})

/** Reads the first `length` bytes: bytes appended during the upload are ignored, a file that shrinks is an error. */
async function* readExactly(source: string, length: number): AsyncGenerator<Buffer, void, undefined> {
  if (length === 0) return
  let bytesRead = 0
  for await (const chunk of createReadStream(source, { end: length - 1, highWaterMark: CHUNK_BYTES })) {
    bytesRead += chunk.length
    yield chunk
  }
  if (bytesRead < length)
    throw new CliError(EXIT.failed, `${sanitize(source)} became shorter during the copy. Copy it again.`)
}
