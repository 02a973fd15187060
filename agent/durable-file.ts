// Replaces files atomically, also such that they survive a power loss.
import { renameSync, rmSync, writeFileSync } from 'node:fs'
import { open, rename, rm, writeFile } from 'node:fs/promises'
import { dirname } from 'node:path'

/** Resolves when the content and the name are on disk. Readers see the old or the new content. */
export async function writeDurably(path: string, content: string): Promise<void> {
  await replaceFile(path, content, { flush: true })
  await sync(dirname(path))
}

/**
 * Readers see the old or the new content. One caller at a time for each path.
 * @param options.flush whether the content is on disk before it replaces the old one
 * @param options.mode default: only the user of the agent can read the file
 */
export async function replaceFile(
  path: string,
  content: string | Buffer,
  { flush = false, mode = MODE } = {},
): Promise<void> {
  const staging = getStagingPath(path)
  const create = () => writeFile(staging, content, { mode, flush, flag: 'wx' })
  try {
    await create().catch(async (error: NodeJS.ErrnoException) => {
      if (error.code !== 'EEXIST') throw error
      // A killed agent has left the file, or the user of the box has created a FIFO, for example.
      await rm(staging, { recursive: true, force: true })
      await create()
    })
    await rename(staging, path)
  } catch (error) {
    // The disk may be full: a partial file would take space.
    await rm(staging, { recursive: true, force: true })
    throw error
  }
}

/** Replaces a file without a flush. After a failed write, the next call removes the partial file. */
export function replaceFileSync(path: string, content: string): void {
  const staging = getStagingPath(path)
  rmSync(staging, { recursive: true, force: true })
  writeFileSync(staging, content, { mode: MODE, flag: 'wx' })
  renameSync(staging, path)
}

const MODE = 0o600
const getStagingPath = (path: string): string => `${path}.new`

/** Makes the content of a file durable, or the names in a directory. */
export async function sync(path: string): Promise<void> {
  const handle = await open(path, 'r')
  try {
    await handle.sync()
  } finally {
    await handle.close()
  }
}
