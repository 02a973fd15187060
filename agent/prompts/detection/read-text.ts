// Reads credential files. The box user may have put anything at their paths.
import { constants } from 'node:fs'
import { open } from 'node:fs/promises'

/** The limit is large because Claude Code also stores the history of projects in one of the files. */
const MAX_BYTES = 4 * 1024 * 1024

/** Returns null when the file does not exist, is not readable, is not a regular file, or is too large. */
export async function readText(path: string): Promise<string | null> {
  // Without O_NONBLOCK, opening a FIFO waits for a writer.
  const file = await open(path, constants.O_RDONLY | constants.O_NONBLOCK).catch(() => null)
  if (file === null) return null
  try {
    const stats = await file.stat()
    if (!stats.isFile() || stats.size > MAX_BYTES) return null
    const buffer = Buffer.alloc(stats.size)
    const { bytesRead } = await file.read(buffer, 0, stats.size, 0)
    return buffer.toString('utf8', 0, bytesRead)
  } catch {
    return null
  } finally {
    await file.close()
  }
}
