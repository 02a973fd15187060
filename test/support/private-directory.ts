// Whether boxes can read files of the project.
import { statSync } from 'node:fs'
import { dirname } from 'node:path'

/** Returns a parent directory that boxes cannot enter: under root, a box runs as a user of its own. */
export function findPrivateDirectory(path: string): string | undefined {
  if (process.getuid?.() !== 0) return undefined
  for (let dir = dirname(path); dir !== '/'; dir = dirname(dir))
    if ((statSync(dir).mode & 0o001) === 0) return dir
  return undefined
}
