// Creates a tar archive of local files. Not npm's `tar`: it fails on a name that is not UTF-8, and on a file that grows or is
// deleted meanwhile.
import {
  closeSync,
  constants,
  fstatSync,
  lstatSync,
  openSync,
  readdirSync,
  readlinkSync,
  readSync,
  realpathSync,
  type Stats,
} from 'node:fs'
import { createPadding, END_OF_ARCHIVE, encodeTarHeader, type TarEntry } from '../../shared/tar.ts'
import { CliError, EXIT } from '../output/exit-codes.ts'
import { sanitize } from '../output/print.ts'
import type { Totals } from './content.ts'
import { toLocalFileError } from './local-files.ts'

/** `name` is the path in the archive. */
export type PackEntry = { path: Buffer; name: Buffer }

const CHUNK_BYTES = 256 * 1024

export const createPackEntry = (path: string, name: string): PackEntry => ({
  path: Buffer.from(path),
  name: Buffer.from(name),
})

/** Counts the files below `root`. @param onSkipped gets the paths of FIFOs, sockets and devices, which are not packed */
export function scan(root: string, onSkipped: (path: string) => void): Totals {
  const totals = { files: 0, bytes: 0 }
  const pending = [createPackEntry(realpathSync(root), root)]
  for (let entry = pending.pop(); entry !== undefined; entry = pending.pop()) {
    const stats = lstatIfExists(entry.path)
    if (stats?.isDirectory()) for (const child of listChildren(entry)) pending.push(child)
    else if (stats?.isFile()) {
      totals.files++
      totals.bytes += stats.size
    } else if (stats !== null && !stats.isSymbolicLink()) onSkipped(entry.name.toString())
  }
  return totals
}

/**
 * Yields the archive of the entries and of everything below them. Symbolic links stay links. Set-user-ID and similar bits are
 * cleared. A file that grows is truncated to the size in its header; a file that shrinks is an error; a file that is deleted
 * before it is read is omitted. Synchronous calls: 2,000 small files take a fifth of the time. @throws CliError
 */
export async function* pack(entries: readonly PackEntry[]): AsyncGenerator<Buffer, void, undefined> {
  const pending = entries.toReversed()
  try {
    for (let entry = pending.pop(); entry !== undefined; entry = pending.pop()) {
      const stats = lstatIfExists(entry.path)
      if (stats?.isFile()) yield* packFile(entry)
      else if (stats?.isSymbolicLink()) {
        const target = readlinkSync(entry.path, { encoding: 'buffer' })
        yield encodeTarHeader({ ...commonFields(entry, stats), type: 'symlink', target })
      } else if (stats?.isDirectory()) {
        for (const child of listChildren(entry).reverse()) pending.push(child)
        yield encodeTarHeader({ ...commonFields(entry, stats), type: 'directory' })
      }
    }
  } catch (error) {
    throw toLocalFileError(error)
  }
  yield END_OF_ARCHIVE
}

/** A directory entry that exists only in the archive. */
export const encodeDirectory = (name: string): Buffer =>
  encodeTarHeader({
    name: Buffer.from(name),
    type: 'directory',
    size: 0,
    mode: 0o755,
    uid: 0,
    gid: 0,
    mtime: 0,
  })

function* packFile(entry: PackEntry): Generator<Buffer, void, undefined> {
  const { O_RDONLY, O_NOFOLLOW, O_NONBLOCK } = constants
  const fd = nullIfMissing(() => openSync(entry.path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK))
  if (fd === null) return
  try {
    const stats = fstatSync(fd)
    const { size } = stats
    const header = encodeTarHeader({ ...commonFields(entry, stats), type: 'file', size })
    const first = readChunk(fd, entry, 0, size)
    // Most files are small: one chunk for header, content and padding.
    if (first.length === size) return yield Buffer.concat([header, first, createPadding(size)])
    yield Buffer.concat([header, first])
    for (let position = first.length; position < size; position += CHUNK_BYTES)
      yield readChunk(fd, entry, position, size)
    yield createPadding(size)
  } finally {
    closeSync(fd)
  }
}

function readChunk(fd: number, { path }: PackEntry, position: number, size: number): Buffer {
  const chunk = Buffer.allocUnsafe(Math.min(CHUNK_BYTES, size - position))
  for (let filled = 0; filled < chunk.length; ) {
    const bytesRead = readSync(fd, chunk, filled, chunk.length - filled, position + filled)
    if (bytesRead === 0)
      throw new CliError(
        EXIT.failed,
        `${sanitize(path.toString())} became shorter during the copy. Copy it again.`,
      )
    filled += bytesRead
  }
  return chunk
}

const commonFields = ({ name }: PackEntry, stats: Stats): Omit<TarEntry, 'type'> => ({
  name,
  size: 0,
  mode: stats.mode & 0o777,
  uid: stats.uid,
  gid: stats.gid,
  mtime: stats.mtimeMs / 1000,
})

/** Names are bytes: they may not be UTF-8. */
function listChildren({ path, name }: PackEntry): PackEntry[] {
  const slash = Buffer.from('/')
  const children = nullIfMissing(() => readdirSync(path, { encoding: 'buffer' })) ?? []
  return children.map((child) => ({
    path: Buffer.concat([path, slash, child]),
    name: Buffer.concat([name, slash, child]),
  }))
}

const lstatIfExists = (path: Buffer): Stats | null => nullIfMissing(() => lstatSync(path))

function nullIfMissing<T>(action: () => T): T | null {
  try {
    return action()
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return null
    throw error
  }
}
