// Temporary files that uploads are written to before they are renamed into place.
import { randomBytes } from 'node:crypto'
import { constants } from 'node:fs'
import { type FileHandle, lstat, open, readdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import type { Clock } from '../../shared/clock.ts'
import { ApiError } from '../../shared/errors.ts'
import { nullIfMissing } from './paths.ts'

const PREFIX = '.boxwood-write-'
/** Longer than any write takes: an older temporary file was left by a killed agent. */
const STALE_MS = 60 * 60 * 1000

export const isTempFileName = (name: string): boolean => name.startsWith(PREFIX)

type Writer = { write(bytes: Buffer): Promise<{ bytesWritten: number }> }

export type TempFile = { path: string; handle: FileHandle }

/** Creates a hidden file in `dir`. `mode` is subject to the umask. */
export async function createTempFile(dir: string, mode: number): Promise<TempFile> {
  const path = join(dir, `${PREFIX}${randomBytes(12).toString('hex')}`)
  const { O_WRONLY, O_CREAT, O_EXCL, O_NOFOLLOW } = constants
  return { path, handle: await open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, mode) }
}

/**
 * Writes the body and returns its size in bytes. Throws `payload_too_large` beyond `limit`. Requests a chunk only after
 * the previous one is written.
 */
export async function writeBody(handle: Writer, body: AsyncIterable<Buffer>, limit: number): Promise<number> {
  let size = 0
  for await (const chunk of body) {
    size += chunk.length
    if (size > limit) throw new ApiError('payload_too_large', `The file is larger than ${limit} bytes.`)
    await writeAll(handle, chunk)
  }
  return size
}

/** On an almost full disk a write is partial without an error; only the next write fails with ENOSPC. */
async function writeAll(handle: Writer, bytes: Buffer): Promise<void> {
  for (let written = 0; written < bytes.length; ) {
    const { bytesWritten } = await handle.write(bytes.subarray(written))
    written += bytesWritten
  }
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
