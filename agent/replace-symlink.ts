// Replaces a symlink atomically.
import { rename, rm, symlink } from 'node:fs/promises'

/** Readers get the old or the new target. One caller at a time for each path. */
export async function replaceSymlink(path: string, target: string): Promise<void> {
  const temporary = `${path}.new`
  // An interrupted call has left the link.
  await rm(temporary, { force: true })
  await symlink(target, temporary)
  await rename(temporary, path)
}
