// A folder as a tar stream: what `tar -C parent -c name` writes, whole or with an error, never silently short.
import { constants, type Stats } from 'node:fs'
import { access, lstat, open, readdir, readlink } from 'node:fs/promises'
import { basename } from 'node:path'
import { ApiError } from '../../shared/errors.ts'
import { errnoOf, fileError } from './errors.ts'
import { existing } from './paths.ts'
import { CHUNK_BYTES, readAt } from './read.ts'
import { isStagingName } from './staging.ts'
import { padding, TAR_END, type TarEntry, tarHeader } from './tar.ts'

/** How many entries of one folder are looked at together. */
const BATCH = 32

type Item = { path: Buffer; name: Buffer }

/**
 * Walks the folder once before anything is answered, so that one that is too large (`payload_too_large`) or holds
 * what the box user may not read (`permission_denied`) gets its own answer instead of a transfer that breaks off.
 * `limit` is bytes of tar.
 */
export async function checkArchive(folder: string, limit: number): Promise<void> {
  let bytes = TAR_END.length
  const check = async ({ path, name }: Item): Promise<Item[]> => {
    const stat = await existing(lstat(path))
    if (stat === null || !belongs(stat)) return []
    bytes += 512 + (name.length > 100 ? 1024 : 0) + (stat.isFile() ? Math.ceil(stat.size / 512) * 512 : 0)
    if (bytes > limit)
      throw new ApiError('payload_too_large', `${folder} is more than ${limit} bytes as a tar.`)
    if (stat.isDirectory()) return children({ path, name })
    if (stat.isFile()) await existing(access(path, constants.R_OK))
    return []
  }
  const waiting = [topOf(folder)]
  while (waiting.length > 0) {
    const batch = waiting.splice(-BATCH)
    const found = await Promise.all(batch.map((item) => check(item).catch((error) => fail(error, item.path))))
    for (const items of found) for (const item of items) waiting.push(item)
  }
}

/**
 * The folder's tar. Its top entry is the folder's own name, the last part of its real path (`.` for `/`). Links stay
 * links; FIFOs, sockets and devices are left out, and what was removed meanwhile. A file that grows is cut at the size
 * its header says; one that becomes shorter or cannot be read is an error.
 */
export async function* archive(folder: string, limit: number): AsyncGenerator<Buffer, void, undefined> {
  let bytes = 0
  for await (const chunk of entries(folder)) {
    bytes += chunk.length
    if (bytes > limit) throw new ApiError('payload_too_large', `${folder} has grown beyond ${limit} bytes.`)
    yield chunk
  }
  yield TAR_END
}

async function* entries(folder: string): AsyncGenerator<Buffer, void, undefined> {
  /** device:inode → the name under which a file with several names was sent. */
  const sent = new Map<string, Buffer>()
  const waiting = [topOf(folder)]
  for (let item = waiting.pop(); item !== undefined; item = waiting.pop()) {
    try {
      const stat = await existing(lstat(item.path))
      if (stat === null || !belongs(stat)) continue
      if (stat.isFile()) {
        yield* file(item, sent)
      } else if (stat.isSymbolicLink()) {
        const target = await existing(readlink(item.path, { encoding: 'buffer' }))
        if (target !== null) yield tarHeader({ ...facts(item, stat), type: 'symlink', target })
      } else {
        for (const child of await children(item)) waiting.push(child)
        yield tarHeader({ ...facts(item, stat), type: 'directory' })
      }
    } catch (error) {
      fail(error, item.path)
    }
  }
}

async function* file(item: Item, sent: Map<string, Buffer>): AsyncGenerator<Buffer, void, undefined> {
  const { O_RDONLY, O_NOFOLLOW, O_NONBLOCK } = constants
  const handle = await existing(open(item.path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK))
  if (handle === null) return
  try {
    const stat = await handle.stat()
    if (!stat.isFile()) throw new ApiError('exec_failed', `${item.path} was replaced while it was read.`)
    const inode = `${stat.dev}:${stat.ino}`
    const target = sent.get(inode)
    if (target !== undefined) return yield tarHeader({ ...facts(item, stat), type: 'link', target })
    if (stat.nlink > 1) sent.set(inode, item.name)
    const header = tarHeader({ ...facts(item, stat), type: 'file', size: stat.size })
    const end = padding(stat.size)
    const first = await readAt(handle, 0, Math.min(stat.size, CHUNK_BYTES), item.path.toString())
    // Most files are small: one chunk for all of it.
    if (first.length === stat.size) return yield Buffer.concat([header, first, end])
    yield header
    yield first
    for (let position = first.length; position < stat.size; position += CHUNK_BYTES) {
      yield await readAt(handle, position, Math.min(stat.size - position, CHUNK_BYTES), item.path.toString())
    }
    if (end.length > 0) yield end
  } finally {
    await handle.close()
  }
}

const facts = ({ name }: Item, stat: Stats): Omit<TarEntry, 'type'> => ({
  name,
  size: 0,
  mode: stat.mode & 0o7777,
  uid: stat.uid,
  gid: stat.gid,
  mtime: stat.mtimeMs / 1000,
})

const topOf = (folder: string): Item => ({
  path: Buffer.from(folder),
  name: Buffer.from(basename(folder) || '.'),
})

/** Names stay bytes: one that is not UTF-8 would otherwise be looked for under another name, and be missing. */
async function children({ path, name }: Item): Promise<Item[]> {
  const names = (await existing(readdir(path, { encoding: 'buffer' }))) ?? []
  return names
    .filter((child) => !isStagingName(child.toString('latin1')))
    .map((child) => ({ path: under(path, child), name: under(name, child) }))
}

const under = (folder: Buffer, child: Buffer): Buffer => Buffer.concat([folder, Buffer.from('/'), child])

const belongs = (stat: Stats): boolean => stat.isFile() || stat.isDirectory() || stat.isSymbolicLink()

function fail(error: unknown, path: Buffer): never {
  throw errnoOf(error) === null ? error : fileError(error, path.toString())
}
