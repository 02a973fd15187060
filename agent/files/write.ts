// Writing a file: all of it under its name, or the old one untouched.
import { constants, createReadStream, type Stats } from 'node:fs'
import { access, chmod, open, rename, rm, stat } from 'node:fs/promises'
import { dirname } from 'node:path'
import type { FastifyBaseLogger } from 'fastify'
import { ApiError } from '../../shared/errors.ts'
import { LIMITS } from '../../shared/limits.ts'
import { errnoOf } from './errors.ts'
import { existing, realTarget } from './paths.ts'
import { CHUNK_BYTES } from './read.ts'
import { fill, openStaging, type Staging } from './staging.ts'

export type WriteDeps = { home: string; log: FastifyBaseLogger; sweep: (folder: string) => Promise<void> }

export type Write = {
  /** Absolute; links in it are followed. */
  path: string
  body: AsyncIterable<Buffer>
  /** What the sender declared, in bytes: a body of another length is not written. */
  length: number | null
  /** The most bytes it may have. */
  limit: number
  /** Permission bits; without them those of the replaced file, else 0644 less the umask. */
  mode: number | undefined
}

/**
 * Replaces or creates a file with the body and returns its real path and size. Throws `payload_too_large`,
 * `invalid_request` for a body of the wrong length, `invalid_path` for what is no file, and errors of the system;
 * then the file is as it was.
 */
export async function writeFile(write: Write, deps: WriteDeps): Promise<{ path: string; size: number }> {
  const path = await realTarget(write.path)
  const old = await existing(stat(path))
  if (old !== null) await checkReplaceable(path, old)
  const folder = dirname(path)
  await deps.sweep(folder).catch((err) => deps.log.warn({ err, folder }, 'cannot look for leftover files'))
  // Nobody else may read a private file while it is being written; a new one without a mode gets it from the umask.
  const mode = write.mode === undefined && old === null ? 0o644 : 0o600
  const staging = await openStaging(folder, mode).catch((error) => {
    // A file can be writable in a folder that is not.
    if (old !== null && CANNOT_RENAME.has(errnoOf(error) ?? '')) return openStaging(deps.home, mode)
    throw error
  })
  try {
    const size = await fill(staging.handle, write.body, write.limit)
    if (write.length !== null && size !== write.length) {
      throw new ApiError('invalid_request', `The body ended after ${size} of ${write.length} bytes.`)
    }
    await finish(staging, { path, old, mode: write.mode })
    return { path, size }
  } finally {
    await staging.handle.close()
    await rm(staging.path, { force: true })
  }
}

type Target = { path: string; old: Stats | null; mode: number | undefined }

async function checkReplaceable(path: string, old: Stats): Promise<void> {
  if (old.isDirectory()) throw new ApiError('invalid_path', `${path} is a directory.`)
  if (!old.isFile()) throw new ApiError('invalid_path', `${path} is not a regular file.`)
  // A rename asks only the folder: without this a read-only file would be replaced.
  await access(path, constants.W_OK)
}

/**
 * The errors of a chown or rename that say that this file has to be written in place: a bind mount (EBUSY, EXDEV),
 * another user's file in a sticky folder or in ours (EPERM, EACCES), an owner this user namespace does not know
 * (EINVAL), a folder mounted read-only, a file system without rename.
 */
const CANNOT_RENAME = new Set(['EBUSY', 'EXDEV', 'EPERM', 'EACCES', 'EINVAL', 'EROFS', 'ENOSYS', 'ENOTSUP'])

async function finish(staging: Staging, target: Target): Promise<void> {
  const { old } = target
  const inFolder = dirname(staging.path) === dirname(target.path)
  // Other names of a hard-linked file must see the new content too.
  if (old !== null && (old.nlink > 1 || !inFolder)) return overwrite(staging.path, target)
  await staging.handle.sync()
  try {
    await replace(staging, target)
  } catch (error) {
    if (old === null || !CANNOT_RENAME.has(errnoOf(error) ?? '')) throw error
    return overwrite(staging.path, target)
  }
  await syncFolder(dirname(target.path))
}

async function replace({ path, handle }: Staging, target: Target): Promise<void> {
  const { old } = target
  const own = await handle.stat()
  if (old !== null && (old.uid !== own.uid || old.gid !== own.gid)) await handle.chown(old.uid, old.gid)
  // After the chown, which clears the set-user-id bits.
  const mode = target.mode ?? (old === null ? undefined : old.mode & 0o7777)
  if (mode !== undefined) await handle.chmod(mode)
  await handle.close()
  await rename(path, target.path)
}

let lastOverwrite: Promise<unknown> = Promise.resolve()

/** In place, one after the other: two at once would mix their bytes. Only here can a full disk hurt the old file. */
function overwrite(from: string, target: Target): Promise<void> {
  const done = lastOverwrite.then(() => copyInto(from, target))
  // The caller gets the failure; the next one in line only waits.
  lastOverwrite = done.catch(() => undefined)
  return done
}

async function copyInto(from: string, { path, mode }: Target): Promise<void> {
  const handle = await open(path, constants.O_WRONLY | constants.O_NOFOLLOW)
  try {
    const size = await fill(
      handle,
      createReadStream(from, { highWaterMark: CHUNK_BYTES }),
      LIMITS.transferBytes,
    )
    await handle.truncate(size)
    await handle.sync()
  } finally {
    await handle.close()
  }
  if (mode !== undefined) await chmod(path, mode)
}

/** Makes the rename itself survive a power cut. */
async function syncFolder(folder: string): Promise<void> {
  try {
    const handle = await open(folder, constants.O_RDONLY | constants.O_DIRECTORY)
    await handle.sync().finally(() => handle.close())
  } catch (error) {
    // A folder that may be written but not read, or a file system that cannot: the file is there all the same.
    if (!['EACCES', 'EPERM', 'EINVAL', 'ENOTSUP'].includes(errnoOf(error) ?? '')) throw error
  }
}
