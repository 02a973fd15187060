// Reads files: exactly as many bytes as fstat reports, or an error. Memory use does not depend on the file size.
import { constants, type Stats } from 'node:fs'
import { type FileHandle, open, realpath, stat as statPath } from 'node:fs/promises'
import { ApiError } from '../../shared/errors.ts'
import { type Credentials, checkNoCredential } from './credential-files.ts'
import { toReadError } from './errors.ts'
import { checkReadable } from './state-access.ts'

/**
 * Size of one read. Measured with 1 GiB over HTTP: 256 KiB reaches 700 to 1000 MiB/s and 1 MiB a third of that,
 * because the allocator returns blocks that large to the kernel and each new block causes page faults again.
 */
export const CHUNK_BYTES = 256 * 1024

/** Smaller files are read completely before their size is sent, because the reported size of a file in /proc or /sys is wrong. */
export const SMALL_FILE_BYTES = 128 * 1024

export type OpenFile = { path: string; handle: FileHandle; stat: Stats }

/** What a request cannot read. */
export type ReadLimits = {
  /** The real path of the agent's state directory. */
  stateDir: string
  /** null: the client may run commands, which can read all files. */
  credentials: Credentials | null
}

/**
 * Opens a file or a directory by its real path. A file beyond the limits is `permission_denied`. Anything else (a FIFO, socket or
 * device) is `invalid_path`. The type is
 * checked before opening, because opening a device can have side effects, and again on the descriptor, because the path
 * may have been replaced in between. With O_NONBLOCK, opening a FIFO created in between does not block.
 */
export async function openForReading(path: string, { stateDir, credentials }: ReadLimits): Promise<OpenFile> {
  const real = await realpath(path)
  checkReadable(real, stateDir)
  checkFileType(real, await statPath(real))
  const { O_RDONLY, O_NONBLOCK, O_NOFOLLOW, O_NOCTTY } = constants
  const handle = await open(real, O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_NOCTTY)
  try {
    const stat = await handle.stat()
    checkFileType(real, stat)
    if (credentials !== null) await checkNoCredential(real, stat, credentials)
    return { path: real, handle, stat }
  } catch (error) {
    await handle.close()
    throw error
  }
}

function checkFileType(path: string, stat: Stats): void {
  if (stat.isFile() || stat.isDirectory()) return
  throw new ApiError('invalid_path', `${path} is neither a file nor a directory.`)
}

/**
 * Reads a small file to its end. The size of `stat` is only a hint: files in /proc report 0. Null when the file is larger than
 * `limit` bytes.
 */
export async function readEntireFile(
  { path, handle, stat }: Pick<OpenFile, 'path' | 'stat'> & { handle: Pick<FileHandle, 'read'> },
  limit: number,
): Promise<Buffer | null> {
  try {
    return await readToEnd(handle, stat.size, limit)
  } catch (error) {
    throw toReadError(error, path, stat)
  }
}

/** Rejects before the response starts when the content of a large file cannot be read at all. */
export async function checkFirstByte({ path, handle, stat }: OpenFile, start: number): Promise<void> {
  // The first read of a file on a disk fails as any other.
  if (stat.blocks > 0) return
  await handle.read(Buffer.alloc(1), 0, 1, start).catch((error: unknown) => {
    throw toReadError(error, path, stat)
  })
}

/**
 * Rejects for a file that has more bytes than its size, which some file systems report wrong: the rest would be missing. A file that has
 * grown has a new size.
 */
export async function checkEnd({ path, handle, stat }: OpenFile): Promise<void> {
  const { bytesRead } = await handle.read(Buffer.alloc(1), 0, 1, stat.size).catch((error: unknown) => {
    throw toReadError(error, path, stat)
  })
  if (bytesRead === 0 || (await handle.stat()).size !== stat.size) return
  throw new ApiError(
    'exec_failed',
    `${path} is longer than its size. Copy the file on the box and download the copy.`,
  )
}

async function readToEnd(
  handle: Pick<FileHandle, 'read'>,
  size: number,
  limit: number,
): Promise<Buffer | null> {
  let buffer = Buffer.allocUnsafe(Math.min(size, limit) + 4096)
  let length = 0
  for (;;) {
    if (length === buffer.length) buffer = Buffer.concat([buffer], Math.min(length * 4, limit + 4096))
    const { bytesRead } = await handle.read(buffer, length, buffer.length - length, null)
    if (bytesRead === 0) return buffer.subarray(0, length)
    length += bytesRead
    if (length > limit) return null
  }
}

/**
 * Yields `size` bytes of the file, from `start`, through two alternating buffers, so that one is filled while the other is
 * sent. Each chunk is valid only until the next one is requested. Fails when the file is shorter. Leaves the handle open.
 */
export async function* readChunks(
  handle: FileHandle,
  size: number,
  path: string,
  start = 0,
): AsyncGenerator<Buffer, void, undefined> {
  const buffers = [Buffer.allocUnsafeSlow(CHUNK_BYTES), Buffer.allocUnsafeSlow(CHUNK_BYTES)] as const
  const startRead = (position: number): Promise<Buffer> => {
    const buffer = buffers[(position / CHUNK_BYTES) % 2 === 0 ? 0 : 1]
    const chunk = buffer.subarray(0, Math.min(CHUNK_BYTES, size - position))
    const next = readInto(chunk, handle, start + position, path)
    // The caller awaits the chunk in the next iteration: a rejection before that must not count as unhandled.
    next.catch(() => undefined)
    return next
  }
  let next = startRead(0)
  for (let position = 0; position < size; position += CHUNK_BYTES) {
    const chunk = await next
    if (position + CHUNK_BYTES < size) next = startRead(position + CHUNK_BYTES)
    yield chunk
  }
}

/** Reads exactly `length` bytes at `position`. Fails when the file is shorter. */
export async function readAt(
  handle: FileHandle,
  position: number,
  length: number,
  path: string,
): Promise<Buffer> {
  return readInto(Buffer.allocUnsafe(length), handle, position, path)
}

async function readInto(buffer: Buffer, handle: FileHandle, position: number, path: string): Promise<Buffer> {
  for (let filled = 0; filled < buffer.length; ) {
    const { bytesRead } = await handle.read(buffer, filled, buffer.length - filled, position + filled)
    if (bytesRead === 0)
      throw new ApiError('exec_failed', `${path} became shorter while it was being read. Try again.`)
    filled += bytesRead
  }
  return buffer
}
