// Finds programs on a PATH, and recognises files that have changed.
import { constants } from 'node:fs'
import { access, realpath, stat } from 'node:fs/promises'
import { isAbsolute, join } from 'node:path'

/** The identity changes when the file is changed, replaced or removed. npm gives all files of a package the same mtime. */
export async function fileIdentity(path: string): Promise<string> {
  const stats = await stat(path).catch(() => null)
  if (stats === null) return ''
  const { dev, ino, size, mtimeMs, ctimeMs } = stats
  return [dev, ino, size, mtimeMs, ctimeMs].join(' ')
}

export type FoundProgram = {
  /** The path as found on the PATH. */
  path: string
  realPath: string
  identity: string
}

/** Returns the first executable file on the PATH. Relative entries are skipped: runs have different working directories. */
export async function findProgram(name: string, path = ''): Promise<FoundProgram | null> {
  for (const dir of new Set(path.split(':'))) {
    const file = join(dir, name)
    if (!isAbsolute(dir) || !(await isExecutableFile(file))) continue
    const realPath = await realpath(file).catch(() => file)
    return { path: file, realPath, identity: `${realPath} ${await fileIdentity(realPath)}` }
  }
  return null
}

async function isExecutableFile(path: string): Promise<boolean> {
  try {
    if (!(await stat(path)).isFile()) return false
    await access(path, constants.X_OK)
    return true
  } catch {
    return false
  }
}
