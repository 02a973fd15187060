// Replaces a file such that the change survives a power loss.
import { open, rename, writeFile } from 'node:fs/promises'
import { dirname } from 'node:path'

/** Resolves when the content and the name are on disk. Readers see the old or the new content. */
export async function writeDurably(path: string, content: string): Promise<void> {
  const staging = `${path}.new`
  await writeFile(staging, content, { mode: 0o600, flush: true })
  await rename(staging, path)
  await syncDirectory(dirname(path))
}

/** Makes the creation of files in the directory durable. */
export async function syncDirectory(dir: string): Promise<void> {
  const handle = await open(dir, 'r')
  try {
    await handle.sync()
  } finally {
    await handle.close()
  }
}
