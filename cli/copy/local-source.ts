// Sources on this machine: a file, a directory, several of them as one directory, stdin, and pipes that the shell passes.

import { createReadStream, type Stats } from 'node:fs'
import { stat } from 'node:fs/promises'
import { normalize } from 'node:path'
import { Readable } from 'node:stream'
import { boxCommand } from '../command-name.ts'
import { CliError, EXIT } from '../output/exit-codes.ts'
import { sanitize } from '../output/print.ts'
import type { DirectoryContent, FileContent, Totals } from './content.ts'
import { openPipe } from './descriptors.ts'
import { getRealPath, nullIfMissing, toLocalFileError, toReadError, withReadErrors } from './local-files.ts'
import { createPackEntry, encodeDirectory, pack, scan } from './pack.ts'
import { toFsPath } from './path-bytes.ts'
import { getLocalName, isContentsPath } from './paths.ts'
import type { Progress } from './progress.ts'
import { readExactly, readSmallFile, SMALL_FILE_BYTES } from './read-local-file.ts'

/** A local source that exists. `totals` is null for a pipe. */
export type LocalSource = { path: string; stats: Stats; totals: Totals | null }

/** Counts the files of a source. @throws CliError for a missing source, and for one that cannot be copied */
export async function inspectLocalSource(path: string, progress: Progress): Promise<LocalSource> {
  const stats = await nullIfMissing(stat(toFsPath(path)))
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
  if (stats.isDirectory()) return openDirectory(path, stats)
  return stats.isFile() ? openFile(path, stats) : Promise.resolve(openPipePath(path))
}

async function openFile(path: string, stats: Stats): Promise<FileContent> {
  const small = await readSmallFile(path, stats.size).catch((error) => {
    throw toReadError(error, path)
  })
  // A small size with a large content is wrong.
  const size = small?.length ?? (stats.size > SMALL_FILE_BYTES ? stats.size : null)
  const read = () => (size === null ? createReadStream(toFsPath(path)) : readExactly(path, size))
  return {
    type: 'file',
    name: getLocalName(path),
    size,
    mode: stats.mode & 0o777,
    mtime: stats.mtimeMs / 1000,
    open: async () =>
      Readable.from(small === null ? withReadErrors(read(), path) : [small], { objectMode: false }),
  }
}

const openPipePath = (path: string): FileContent => ({
  type: 'file',
  name: getLocalName(path),
  size: null,
  mode: null,
  mtime: null,
  open: async () =>
    openPipe(path, 'read') ??
    Readable.from(withReadErrors(createReadStream(path), path), { objectMode: false }),
})

async function openDirectory(path: string, { mode, mtimeMs }: Stats): Promise<DirectoryContent> {
  return {
    type: 'directory',
    name: isContentsPath(path) ? '' : getLocalName(path),
    mode: mode & 0o777,
    mtime: mtimeMs / 1000,
    // `path` may be a symbolic link.
    archive: pack([createPackEntry(await getRealPath(path), TOP_NAME)]),
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
        await getRealPath(path),
        isContentsPath(path) ? TOP_NAME : `${TOP_NAME}/${getLocalName(path)}`,
      ),
    )
    yield* pack(await Promise.all(entries))
  }
  return { type: 'directory', name: '', mode: null, mtime: null, archive: createArchive() }
}

export const openStdin = (): FileContent => ({
  type: 'file',
  name: '',
  size: null,
  mode: null,
  mtime: null,
  open: async () => process.stdin,
})
