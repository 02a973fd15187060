// Replaces files that boxes may be able to write.
import { randomBytes } from 'node:crypto'
import { open, rename, rm } from 'node:fs/promises'

/**
 * Replaces a file atomically. Safe in a directory that a box can write: the temporary file has a random
 * name and is created exclusively, so symlinks planted by the box are not followed. A directory with the name of the file
 * is renamed.
 * @param options.mode default: 0600
 * @param options.isDurable survives a power loss; else the file may then be empty
 */
export async function writeAtomically(
  path: string,
  text: string,
  {
    owner = null,
    mode = 0o600,
    isDurable = false,
  }: { owner?: number | null; mode?: number; isDurable?: boolean } = {},
): Promise<void> {
  const tempPath = `${path}.${randomBytes(6).toString('hex')}`
  try {
    const file = await open(tempPath, 'wx', 0o600)
    try {
      await file.writeFile(text)
      if (owner !== null) await file.chown(owner, owner)
      // The umask applies to a new file.
      if (mode !== 0o600) await file.chmod(mode)
      if (isDurable) await file.sync()
    } finally {
      await file.close()
    }
    await rename(tempPath, path).catch(async (error: NodeJS.ErrnoException) => {
      if (error.code !== 'EISDIR') throw error
      await rename(path, `${tempPath}.replaced`)
      await rename(tempPath, path)
    })
  } catch (error) {
    await rm(tempPath, { force: true })
    throw error
  }
}
