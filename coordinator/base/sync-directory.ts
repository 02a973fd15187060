// Makes the names in a directory durable: a rename survives a power loss.
import { open } from 'node:fs/promises'

export async function syncDirectory(dir: string): Promise<void> {
  const handle = await open(dir)
  try {
    await handle.sync()
  } finally {
    await handle.close()
  }
}
