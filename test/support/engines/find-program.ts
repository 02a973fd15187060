// Finds programs on the PATH and in the directories of administrators.
import { accessSync, constants } from 'node:fs'
import { delimiter, join } from 'node:path'

const DIRECTORIES = [
  ...(process.env.PATH ?? '').split(delimiter),
  '/usr/local/sbin',
  '/usr/sbin',
  '/sbin',
  '/usr/libexec/incus',
]

/** Returns the path of the program. */
export function findProgram(name: string): string | undefined {
  return DIRECTORIES.map((dir) => join(dir, name)).find((path) => {
    try {
      accessSync(path, constants.X_OK)
      return true
    } catch {
      return false
    }
  })
}
