// Replaces or creates a file atomically: temporary file, fsync, rename. Overwrites in place where rename is impossible.
import { constants, createReadStream, type Stats } from 'node:fs'
import { access, chmod, type FileHandle, open, rename, rm, stat } from 'node:fs/promises'
import { dirname } from 'node:path'
import { ApiError } from '../../shared/errors.ts'
import { LIMITS } from '../../shared/limits.ts'
import type { FileDeps } from './deps.ts'
import { getSystemErrorCode } from './errors.ts'
import { nullIfMissing, resolveWriteTarget } from './paths.ts'
import { CHUNK_BYTES } from './read.ts'
import { checkWritable } from './state-access.ts'
import { createTempFile, type TempFile, writeBody } from './temp-file.ts'

export type WriteDeps = Pick<FileDeps, 'home' | 'stateDir' | 'log'> & {
  sweepTempFiles: (dir: string) => Promise<void>
}

export type WriteOptions = {
  /** Absolute. Symbolic links are followed. */
  path: string
  body: AsyncIterable<Buffer>
  /** The length that the sender declared, in bytes. A body of another length is rejected. */
  length: number | null
  /** Maximum size in bytes. */
  limit: number
  /** Permission bits. Default: those of the replaced file without its set-user-ID and set-group-ID bits; for a new file 0644 with the umask applied. */
  mode: number | undefined
  /** The modification time in seconds since the epoch. Default: now. */
  mtime?: number | undefined
}

/**
 * Replaces or creates a file with the body and returns its real path and its size in bytes. Throws `payload_too_large`,
 * `invalid_request` for a body of the wrong length, `invalid_path` for a target that is not a regular file, and system
 * errors. After an error the file is unchanged, unless overwriting it in place has failed.
 */
export async function writeFile(
  options: WriteOptions,
  deps: WriteDeps,
): Promise<{ path: string; size: number }> {
  const path = await resolveWriteTarget(options.path)
  checkWritable(path, deps.stateDir)
  const old = await nullIfMissing(stat(path))
  if (old !== null) await checkReplaceable(path, old)
  const dir = dirname(path)
  await deps
    .sweepTempFiles(dir)
    .catch((err) => deps.log.warn({ err, dir }, 'failed to remove stale temporary files'))
  // 0600 keeps a private file unreadable for other users while it is written. A new file without a mode gets the default.
  const mode = options.mode === undefined && old === null ? 0o644 : 0o600
  const temp = await createTempFile(dir, mode).catch((error) => {
    // A writable file can be in a directory that is not writable.
    if (old !== null && REQUIRES_OVERWRITE.has(getSystemErrorCode(error) ?? ''))
      return createTempFile(deps.home, mode)
    throw error
  })
  try {
    const size = await writeBody(temp.handle, options.body, options.limit)
    if (options.length !== null && size !== options.length) {
      throw new ApiError(
        'invalid_request',
        `The body has ${size} bytes, but the declared length is ${options.length}. Upload the file again.`,
      )
    }
    await commitWrite(temp, { path, old, mode: options.mode, mtime: options.mtime })
    return { path, size }
  } finally {
    await temp.handle.close()
    await rm(temp.path, { force: true })
  }
}

/** New content must not get the privileges that the old content had. */
const SET_ID_BITS = 0o6000

type Target = { path: string; old: Stats | null; mode: number | undefined; mtime: number | undefined }

async function checkReplaceable(path: string, old: Stats): Promise<void> {
  if (old.isDirectory())
    throw new ApiError('invalid_path', `${path} is a directory. Add the name of the file.`)
  if (!old.isFile()) throw new ApiError('invalid_path', `${path} is not a regular file. Choose another path.`)
  // rename() checks only the directory's permissions and would replace a read-only file.
  await access(path, constants.W_OK)
}

/**
 * Errors of creating a temporary file, chown or rename after which the file is overwritten in place: a bind mount (EBUSY,
 * EXDEV), another user's file in a sticky directory or a directory that is not writable (EPERM, EACCES), an owner that
 * is unknown in this user namespace (EINVAL), a directory mounted read-only (EROFS), a file system without rename.
 */
const REQUIRES_OVERWRITE = new Set([
  'EBUSY',
  'EXDEV',
  'EPERM',
  'EACCES',
  'EINVAL',
  'EROFS',
  'ENOSYS',
  'ENOTSUP',
])

async function commitWrite(temp: TempFile, target: Target): Promise<void> {
  const { old } = target
  const isSameDir = dirname(temp.path) === dirname(target.path)
  // All names of a hard-linked file must get the new content. When the temporary file is in another directory, the
  // target's directory is not writable, and rename would fail.
  if (old !== null && (old.nlink > 1 || !isSameDir)) return overwrite(temp.path, target)
  await temp.handle.sync()
  try {
    await replace(temp, target)
  } catch (error) {
    if (old === null || !REQUIRES_OVERWRITE.has(getSystemErrorCode(error) ?? '')) throw error
    return overwrite(temp.path, target)
  }
  await syncDirectory(dirname(target.path))
}

async function replace({ path, handle }: TempFile, target: Target): Promise<void> {
  const { old } = target
  const tempStats = await handle.stat()
  if (old !== null && (old.uid !== tempStats.uid || old.gid !== tempStats.gid))
    await handle.chown(old.uid, old.gid)
  // chmod after chown: chown clears the set-user-ID and set-group-ID bits that the request has set.
  const mode = target.mode ?? (old === null ? undefined : old.mode & ~SET_ID_BITS & 0o7777)
  if (mode !== undefined) await handle.chmod(mode)
  if (target.mtime !== undefined) await handle.utimes(target.mtime, target.mtime)
  await handle.close()
  await rename(path, target.path)
}

let lastOverwrite: Promise<unknown> = Promise.resolve()

/**
 * Overwrites in place, one file at a time: concurrent writers would mix their bytes. The only path on which a full disk
 * can damage the old file.
 */
function overwrite(source: string, target: Target): Promise<void> {
  const result = lastOverwrite.then(() => copyInto(source, target))
  // The caller handles the error; the next overwrite only waits.
  lastOverwrite = result.catch(() => undefined)
  return result
}

async function copyInto(source: string, { path, mode, mtime }: Target): Promise<void> {
  const handle = await open(path, constants.O_WRONLY | constants.O_NOFOLLOW)
  try {
    await clearSetIdBits(handle)
    const size = await writeBody(
      handle,
      createReadStream(source, { highWaterMark: CHUNK_BYTES }),
      LIMITS.transferBytes,
    )
    await handle.truncate(size)
    if (mtime !== undefined) await setModificationTime(handle, mtime)
    await handle.sync()
  } finally {
    await handle.close()
  }
  if (mode !== undefined) await chmod(path, mode)
}

/** Does what the kernel does when an unprivileged process writes, also for a file of another owner. */
async function clearSetIdBits(handle: FileHandle): Promise<void> {
  const { mode } = await handle.stat()
  if ((mode & SET_ID_BITS) === 0) return
  await handle.chmod(mode & ~SET_ID_BITS & 0o7777).catch((error) => {
    if (getSystemErrorCode(error) !== 'EPERM') throw error
  })
}

/** Only the owner of a file may set its time. */
async function setModificationTime(handle: FileHandle, mtime: number): Promise<void> {
  await handle.utimes(mtime, mtime).catch((error) => {
    if (getSystemErrorCode(error) !== 'EPERM') throw error
  })
}

/** Makes the rename durable across a power failure. */
async function syncDirectory(dir: string): Promise<void> {
  try {
    const handle = await open(dir, constants.O_RDONLY | constants.O_DIRECTORY)
    await handle.sync().finally(() => handle.close())
  } catch (error) {
    // The directory is not readable, or the file system cannot sync directories. The write has succeeded anyway.
    if (!['EACCES', 'EPERM', 'EINVAL', 'ENOTSUP'].includes(getSystemErrorCode(error) ?? '')) throw error
  }
}
