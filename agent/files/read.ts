// Reading a file: exactly the bytes its open descriptor says it has, or an error. Memory does not grow with its size.
import { constants, type Stats } from 'node:fs'
import { type FileHandle, open, realpath, stat as statPath } from 'node:fs/promises'
import { Readable } from 'node:stream'
import { ApiError } from '../../shared/errors.ts'

/**
 * One read or write, in bytes. Measured at 1 GiB over HTTP: 256 KiB moves 700 to 1000 MiB/s and 1 MiB a third of that,
 * because the allocator gives blocks that large back to the system and each new one is paged in again.
 */
export const CHUNK_BYTES = 256 * 1024

export type OpenFile = { path: string; handle: FileHandle; stat: Stats }

/**
 * Opens a file or a folder under its real path. Anything else (a FIFO, socket or device) is `invalid_path`. That is
 * asked before, because opening a device can do something, and of the descriptor, because only that cannot change;
 * O_NONBLOCK keeps a FIFO put there in between from holding the request for ever.
 */
export async function openForReading(path: string): Promise<OpenFile> {
  const real = await realpath(path)
  checkKind(real, await statPath(real))
  const { O_RDONLY, O_NONBLOCK, O_NOFOLLOW, O_NOCTTY } = constants
  const handle = await open(real, O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_NOCTTY)
  try {
    const stat = await handle.stat()
    checkKind(real, stat)
    return { path: real, handle, stat }
  } catch (error) {
    await handle.close()
    throw error
  }
}

function checkKind(path: string, stat: Stats): void {
  if (stat.isFile() || stat.isDirectory()) return
  throw new ApiError('invalid_path', `${path} is neither a file nor a directory.`)
}

/** All of a small file, whatever size it claims: files of /proc claim none. Null when it has more than `limit` bytes. */
export async function readWhole(handle: FileHandle, claimed: number, limit: number): Promise<Buffer | null> {
  let buffer = Buffer.allocUnsafe(Math.min(claimed, limit) + 4096)
  let length = 0
  for (;;) {
    if (length === buffer.length) buffer = Buffer.concat([buffer], Math.min(length * 4, limit + 4096))
    const { bytesRead } = await handle.read(buffer, length, buffer.length - length, null)
    if (bytesRead === 0) return buffer.subarray(0, length)
    length += bytesRead
    if (length > limit) return null
  }
}

/** The first `size` bytes of the file, then its end; errors when the file has become shorter. Closes the handle. */
export function exactStream(handle: FileHandle, size: number, path: string): Readable {
  let position = 0
  return new Readable({
    highWaterMark: CHUNK_BYTES,
    read() {
      readAt(handle, position, Math.min(CHUNK_BYTES, size - position), path).then(
        (chunk) => {
          position += chunk.length
          this.push(chunk)
          if (position === size) this.push(null)
        },
        (error: Error) => this.destroy(error),
      )
    },
    destroy(error, done) {
      handle.close().then(
        () => done(error),
        (closing: Error) => done(error ?? closing),
      )
    },
  })
}

/**
 * The same for a reader that is done with a chunk when it asks for the next one: two blocks serve for all of the file,
 * one being filled while the other is sent. Leaves the handle open.
 */
export async function* exactChunks(
  handle: FileHandle,
  size: number,
  path: string,
): AsyncGenerator<Buffer, void, undefined> {
  const blocks = [Buffer.allocUnsafeSlow(CHUNK_BYTES), Buffer.allocUnsafeSlow(CHUNK_BYTES)] as const
  const fill = (position: number): Promise<Buffer> => {
    const block = blocks[(position / CHUNK_BYTES) % 2 === 0 ? 0 : 1]
    const next = readInto(block.subarray(0, Math.min(CHUNK_BYTES, size - position)), handle, position, path)
    // It is awaited when its turn comes; until then its failure must not count as unhandled.
    next.catch(() => undefined)
    return next
  }
  let next = fill(0)
  for (let position = 0; position < size; position += CHUNK_BYTES) {
    const chunk = await next
    if (position + CHUNK_BYTES < size) next = fill(position + CHUNK_BYTES)
    yield chunk
  }
}

/** The `length` bytes at `position`; an error when the file ends before them. */
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
    if (bytesRead === 0) throw new ApiError('exec_failed', `${path} became shorter while it was read.`)
    filled += bytesRead
  }
  return buffer
}
