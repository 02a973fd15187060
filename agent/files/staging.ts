// The temporary file that a write goes to first, so that a write which does not end leaves nothing behind.
import { randomBytes } from 'node:crypto'
import { constants } from 'node:fs'
import { type FileHandle, lstat, open, readdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import type { Clock } from '../../shared/clock.ts'
import { ApiError } from '../../shared/errors.ts'
import { existing } from './paths.ts'

const PREFIX = '.boxwood-write-'
/** A leftover of an agent that was killed: older than any write that is still going on. */
const STALE_MS = 60 * 60 * 1000

export const isStagingName = (name: string): boolean => name.startsWith(PREFIX)

type Writer = { write(bytes: Buffer): Promise<{ bytesWritten: number }> }

export type Staging = { path: string; handle: FileHandle }

/** A new hidden file in `folder` with these permission bits, less the umask. */
export async function openStaging(folder: string, mode: number): Promise<Staging> {
  const path = join(folder, `${PREFIX}${randomBytes(12).toString('hex')}`)
  const { O_WRONLY, O_CREAT, O_EXCL, O_NOFOLLOW } = constants
  return { path, handle: await open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, mode) }
}

/** Writes the body and returns its size in bytes; `payload_too_large` beyond `limit`. Asks for a chunk once the one
 * before it is written. */
export async function fill(handle: Writer, body: AsyncIterable<Buffer>, limit: number): Promise<number> {
  let size = 0
  for await (const chunk of body) {
    size += chunk.length
    if (size > limit) throw new ApiError('payload_too_large', `A file is at most ${limit} bytes.`)
    await writeAll(handle, chunk)
  }
  return size
}

/** A disk that is almost full takes a part without an error: only the next write says why. */
async function writeAll(handle: Writer, bytes: Buffer): Promise<void> {
  for (let written = 0; written < bytes.length; ) {
    const { bytesWritten } = await handle.write(bytes.subarray(written))
    written += bytesWritten
  }
}

/** Removes what killed agents left in the folders that are written to; looks at each folder once an hour. */
export function leftoverSweeper(clock: Clock): (folder: string) => Promise<void> {
  const swept = new Map<string, number>()
  return async (folder) => {
    const now = clock.now()
    if (now - (swept.get(folder) ?? Number.NEGATIVE_INFINITY) < STALE_MS) return
    if (swept.size >= 1000) swept.clear()
    swept.set(folder, now)
    for (const name of (await readdir(folder)).filter(isStagingName)) {
      const path = join(folder, name)
      const stat = await existing(lstat(path))
      if (stat !== null && now - stat.mtimeMs > STALE_MS) await rm(path, { force: true })
    }
  }
}
