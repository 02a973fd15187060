// Temporary files that uploads are written to before they are renamed into place.
import { randomBytes } from 'node:crypto'
import { constants } from 'node:fs'
import { type FileHandle, lstat, open, readdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import type { Clock } from '../../shared/clock.ts'
import { ApiError } from '../../shared/errors.ts'
import { freeBuffer } from '../../shared/free-buffer.ts'
import { nullIfMissing } from './paths.ts'

const PREFIX = '.boxwood-write-'
/** Longer than any write takes: an older temporary file was left by a killed agent. */
const STALE_MS = 60 * 60 * 1000

export const isTempFileName = (name: string): boolean => name.startsWith(PREFIX)

/** Size of one write, when enough bytes have been received. With 256 KiB the agent uses a fifth more CPU. */
const WRITE_BYTES = 1024 * 1024
/** The kernel accepts at most this many buffers in one writev(). Bounds the memory that very small chunks use. */
const MAX_CHUNKS = 1024

type Writer = { writev(chunks: readonly Buffer[]): Promise<{ bytesWritten: number }> }

export type TempFile = { path: string; handle: FileHandle }

/** Creates a hidden file in `dir`. `mode` is subject to the umask. */
export async function createTempFile(dir: string, mode: number): Promise<TempFile> {
  const path = join(dir, `${PREFIX}${randomBytes(12).toString('hex')}`)
  const { O_WRONLY, O_CREAT, O_EXCL, O_NOFOLLOW } = constants
  return { path, handle: await open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, mode) }
}

/**
 * Writes the body and returns its size in bytes. Throws `payload_too_large` beyond `limit`. Receives the next chunks during
 * a write, and frees the written ones. After an error a write may still be running, for which `handle.close()` waits.
 */
export async function writeBody(handle: Writer, body: AsyncIterable<Buffer>, limit: number): Promise<number> {
  let size = 0
  let received: Buffer[] = []
  let receivedBytes = 0
  let writing = Promise.resolve()
  for await (const chunk of body) {
    size += chunk.length
    if (size > limit) throw new ApiError('payload_too_large', `The file is larger than ${limit} bytes.`)
    received.push(chunk)
    receivedBytes += chunk.length
    if (receivedBytes < WRITE_BYTES && received.length < MAX_CHUNKS) continue
    await writing
    writing = writeAll(handle, received, receivedBytes)
    // The next `await writing` throws the error.
    writing.catch(() => undefined)
    received = []
    receivedBytes = 0
  }
  await writing
  await writeAll(handle, received, receivedBytes)
  return size
}

/** On an almost full disk a write is partial without an error; only the next write fails with ENOSPC. */
async function writeAll(handle: Writer, chunks: readonly Buffer[], size: number): Promise<void> {
  let rest = chunks
  for (let remaining = size; remaining > 0; ) {
    const { bytesWritten } = await handle.writev(rest)
    remaining -= bytesWritten
    if (remaining > 0) rest = [Buffer.concat(rest).subarray(bytesWritten)]
  }
  chunks.forEach(freeBuffer)
}

/** Returns a function that removes stale temporary files from a directory, at most once an hour per directory. */
export function createTempFileSweeper(clock: Clock): (dir: string) => Promise<void> {
  const sweptAt = new Map<string, number>()
  return async (dir) => {
    const now = clock.now()
    if (now - (sweptAt.get(dir) ?? Number.NEGATIVE_INFINITY) < STALE_MS) return
    if (sweptAt.size >= 1000) sweptAt.clear()
    sweptAt.set(dir, now)
    for (const name of (await readdir(dir)).filter(isTempFileName)) {
      const path = join(dir, name)
      const stat = await nullIfMissing(lstat(path))
      if (stat !== null && now - stat.mtimeMs > STALE_MS) await rm(path, { force: true })
    }
  }
}
