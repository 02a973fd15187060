// Replaces files, also such that they survive a power loss.
import { open, rename, rm, writeFile } from 'node:fs/promises'
import { dirname } from 'node:path'

/** Resolves when the content and the name are on disk. Readers see the old or the new content. */
export async function writeDurably(path: string, content: string): Promise<void> {
  await replaceFile(path, content, { flush: true })
  await sync(dirname(path))
}

/** Readers see the old or the new content. `flush`: the content is on disk before it replaces the old one. */
export async function replaceFile(path: string, content: string, { flush = false } = {}): Promise<void> {
  const staging = `${path}.new`
  const create = () => writeFile(staging, content, { mode: 0o600, flush, flag: 'wx' })
  await create().catch(async (error: NodeJS.ErrnoException) => {
    if (error.code !== 'EEXIST') throw error
    // Left by a killed agent, or a FIFO, for example.
    await rm(staging, { recursive: true, force: true })
    await create()
  })
  await rename(staging, path)
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
