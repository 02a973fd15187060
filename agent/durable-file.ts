// Writes files such that they survive a power loss.
import { open, rename, rm, writeFile } from 'node:fs/promises'
import { dirname } from 'node:path'

/** Resolves when the content and the name are on disk. Readers see the old or the new content. */
export async function writeDurably(path: string, content: string): Promise<void> {
  const staging = `${path}.new`
  // Left by a killed agent, or a FIFO, for example.
  await rm(staging, { recursive: true, force: true })
  await writeFile(staging, content, { mode: 0o600, flush: true, flag: 'wx' })
  await rename(staging, path)
  await sync(dirname(path))
}

/** Makes the content of a file durable, or the names in a directory. */
export async function sync(path: string): Promise<void> {
  const handle = await open(path, 'r')
  try {
    await handle.sync()
  } finally {
    await handle.close()
  }
}
