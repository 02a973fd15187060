// Streams a directory as a tar archive, like `tar -C parent -c name`. An incomplete archive always ends with an error.
import { constants, type Stats } from 'node:fs'
import { access, lstat, open, readdir, readlink } from 'node:fs/promises'
import { basename } from 'node:path'
import { ApiError } from '../../shared/errors.ts'
import { LIMITS } from '../../shared/limits.ts'
import { createPadding, END_OF_ARCHIVE, encodeTarHeader, type TarEntry } from '../../shared/tar.ts'
import { isProcessFile } from './credential-files.ts'
import { getSystemErrorCode, toFileError } from './errors.ts'
import { joinPath, nullIfMissing } from './paths.ts'
import {
  CHUNK_BYTES,
  checkEnd,
  type OpenFile,
  type ReadLimits,
  readAt,
  readEntireFile,
  SMALL_FILE_BYTES,
} from './read.ts'
import { isTempFileName } from './temp-file.ts'

/** How many entries are checked concurrently. */
const BATCH_SIZE = 32

/** `bytes` is the size of the files. FIFOs, sockets, devices and files that the client cannot read are skipped. */
export type ArchiveContent = { files: number; bytes: number; skipped: number }

type ArchiveEntry = { path: Buffer; name: Buffer }

/**
 * Walks the directory before the response starts, so that a directory that is too large (`payload_too_large`) or has an
 * unreadable entry (`permission_denied`) gets an error response instead of an aborted transfer.
 * `limit` is the size of the archive in bytes.
 * @param limits what is omitted
 */
export async function checkArchivable(
  dir: string,
  limit: number,
  limits: ReadLimits,
): Promise<ArchiveContent> {
  let archiveBytes = END_OF_ARCHIVE.length
  const content = { files: 0, bytes: 0, skipped: 0 }
  const checkEntry = async ({ path, name }: ArchiveEntry): Promise<ArchiveEntry[]> => {
    const stat = await nullIfMissing(lstat(path))
    if (stat === null) return []
    if (!isArchivable(stat) || (await isCredential(path, stat, limits))) {
      content.skipped++
      return []
    }
    const size = stat.isFile() ? stat.size : 0
    archiveBytes += 512 + (name.length > 100 ? 1024 : 0) + Math.ceil(size / 512) * 512
    if (archiveBytes > limit)
      throw new ApiError(
        'payload_too_large',
        `${dir} is larger than ${limit} bytes as a tar archive. Download its subdirectories separately.`,
      )
    if (stat.isDirectory()) return listChildren({ path, name }, limits.stateDir)
    if (stat.isFile()) {
      content.files++
      content.bytes += size
      await nullIfMissing(access(path, constants.R_OK))
    }
    return []
  }
  const pending = [createRootEntry(dir)]
  while (pending.length > 0) {
    const batch = pending.splice(-BATCH_SIZE)
    const children = await Promise.all(
      batch.map((entry) => checkEntry(entry).catch((error) => throwFileError(error, entry.path))),
    )
    for (const entries of children) for (const entry of entries) pending.push(entry)
  }
  return content
}

/**
 * Yields the archive of a directory. The top entry is the last component of the directory's real path (`.` for `/`).
 * Symbolic links are stored as links. FIFOs, sockets, devices and entries deleted during the walk are skipped. A file
 * that grows is truncated to the size in its header. A large file that shrinks, and one that cannot be read, is an error.
 * @param limits what is omitted
 */
export async function* archiveDirectory(
  dir: string,
  limit: number,
  limits: ReadLimits,
): AsyncGenerator<Buffer, void, undefined> {
  let bytes = 0
  for await (const chunk of walkEntries(dir, limits)) {
    bytes += chunk.length
    if (bytes > limit) throw new ApiError('payload_too_large', `${dir} has grown beyond ${limit} bytes.`)
    yield chunk
  }
  yield END_OF_ARCHIVE
}

async function* walkEntries(dir: string, limits: ReadLimits): AsyncGenerator<Buffer, void, undefined> {
  /** `device:inode` → entry name under which a hard-linked file was first archived. */
  const archivedInodes = new Map<string, Buffer>()
  const pending = [createRootEntry(dir)]
  for (let entry = pending.pop(); entry !== undefined; entry = pending.pop()) {
    try {
      const stat = await nullIfMissing(lstat(entry.path))
      if (stat === null || !isArchivable(stat) || (await isCredential(entry.path, stat, limits))) continue
      if (stat.isFile()) {
        yield* archiveFile(entry, archivedInodes)
      } else if (stat.isSymbolicLink()) {
        const target = await nullIfMissing(readlink(entry.path, { encoding: 'buffer' }))
        if (target !== null) yield encodeTarHeader({ ...commonFields(entry, stat), type: 'symlink', target })
      } else {
        for (const child of await listChildren(entry, limits.stateDir)) pending.push(child)
        yield encodeTarHeader({ ...commonFields(entry, stat), type: 'directory' })
      }
    } catch (error) {
      throwFileError(error, entry.path)
    }
  }
}

async function* archiveFile(
  entry: ArchiveEntry,
  archivedInodes: Map<string, Buffer>,
): AsyncGenerator<Buffer, void, undefined> {
  const { O_RDONLY, O_NOFOLLOW, O_NONBLOCK } = constants
  const handle = await nullIfMissing(open(entry.path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK))
  if (handle === null) return
  try {
    const stat = await handle.stat()
    if (!stat.isFile())
      throw new ApiError('exec_failed', `${entry.path} was replaced while it was being read. Try again.`)
    const inode = `${stat.dev}:${stat.ino}`
    const target = archivedInodes.get(inode)
    if (target !== undefined)
      return yield encodeTarHeader({ ...commonFields(entry, stat), type: 'link', target })
    if (stat.nlink > 1) archivedInodes.set(inode, entry.name)
    const encodeHeader = (size: number) =>
      encodeTarHeader({ ...commonFields(entry, stat), type: 'file', size })
    const file = { path: entry.path.toString(), handle, stat }
    const small = await readSmallFile(file)
    // Most files are small: yield header, content and padding as one chunk.
    if (small !== null)
      return yield Buffer.concat([encodeHeader(small.length), small, createPadding(small.length)])
    yield encodeHeader(stat.size)
    for (let position = 0; position < stat.size; position += CHUNK_BYTES)
      yield await readAt(handle, position, Math.min(stat.size - position, CHUNK_BYTES), file.path)
    await checkEnd(file)
    const padding = createPadding(stat.size)
    if (padding.length > 0) yield padding
  } finally {
    await handle.close()
  }
}

/** Null for a large file. A small size with a large content is wrong. */
async function readSmallFile(file: OpenFile): Promise<Buffer | null> {
  if (file.stat.size > SMALL_FILE_BYTES) return null
  const bytes = await readEntireFile(file, LIMITS.inlineFileBytes)
  if (bytes !== null) return bytes
  const { size } = await file.handle.stat()
  if (size > LIMITS.inlineFileBytes)
    throw new ApiError('exec_failed', `${file.path} grew while it was being read. Try again.`)
  throw new ApiError('exec_failed', `${file.path} is longer than its size. Download it separately.`)
}

const commonFields = ({ name }: ArchiveEntry, stat: Stats): Omit<TarEntry, 'type'> => ({
  name,
  size: 0,
  mode: stat.mode & 0o7777,
  uid: stat.uid,
  gid: stat.gid,
  mtime: stat.mtimeMs / 1000,
})

const createRootEntry = (dir: string): ArchiveEntry => ({
  path: Buffer.from(dir),
  name: Buffer.from(basename(dir) || '.'),
})

/** Names are bytes: decoding a name that is not UTF-8 would change it, and the entry would be skipped as missing. */
async function listChildren({ path, name }: ArchiveEntry, stateDir: string): Promise<ArchiveEntry[]> {
  const omitted = Buffer.from(stateDir)
  const children = (await nullIfMissing(readdir(path, { encoding: 'buffer' }))) ?? []
  return children
    .filter((child) => !isTempFileName(child.toString('latin1')))
    .map((child) => ({ path: joinPath(path, child), name: joinPath(name, child) }))
    .filter((child) => !child.path.equals(omitted))
}

const isArchivable = (stat: Stats): boolean => stat.isFile() || stat.isDirectory() || stat.isSymbolicLink()

/** Files of processes have no blocks: see CredentialFiles. */
const isCredential = async (path: Buffer, stat: Stats, { credentials }: ReadLimits): Promise<boolean> =>
  credentials !== null &&
  (credentials.includes(path.toString(), stat) ||
    (stat.isFile() && stat.blocks === 0 && (await nullIfMissing(isProcessFile(path))) === true))

function throwFileError(error: unknown, path: Buffer): never {
  throw getSystemErrorCode(error) === null ? error : toFileError(error, path.toString())
}
