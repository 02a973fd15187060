// A cache of archives in the project's directory: coordinators with other data directories do not build them again.
import { constants } from 'node:fs'
import { copyFile, mkdir, readdir, rename, rm, stat, utimes } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'

const CACHE_DIR = 'node_modules/.cache/boxwood/agent-archives'
/** The archives that were used last are kept, of this many builds. Each has about 45 MB. */
const MAX_ARCHIVES = 3

export type ArchiveCache = {
  /** Copies the files to the directory. Returns whether all were cached. */
  load(names: readonly string[], dir: string): Promise<boolean>
  /** Never rejects: the project may be read-only. */
  store(files: readonly string[]): Promise<void>
}

export function createArchiveCache(projectRoot: string): ArchiveCache {
  const cacheDir = join(projectRoot, CACHE_DIR)
  return {
    async load(names, dir) {
      try {
        for (const name of names) await copy(join(cacheDir, name), join(dir, name))
        await recordUse(names.map((name) => join(cacheDir, name)))
        return true
      } catch {
        return false
      }
    },
    async store(files) {
      try {
        await mkdir(cacheDir, { recursive: true })
        for (const file of files) await copy(file, join(cacheDir, basename(file)))
        await removeOldest(cacheDir)
      } catch {
        // The archive is built again for another data directory.
      }
    },
  }
}

/** Other processes see complete files only. */
async function copy(source: string, target: string): Promise<void> {
  const tempFile = join(dirname(target), `.${basename(target)}.${process.pid}`)
  try {
    await copyFile(source, tempFile, constants.COPYFILE_FICLONE)
    await rename(tempFile, target)
  } finally {
    await rm(tempFile, { force: true })
  }
}

/** The modification time of a cached archive is the time of its last use. */
async function recordUse(files: readonly string[]): Promise<void> {
  const now = new Date()
  // The project may be read-only.
  await Promise.allSettled(files.map((file) => utimes(file, now, now)))
}

async function removeOldest(dir: string): Promise<void> {
  const archives = (await readdir(dir)).filter((name) => name.endsWith('.tar.gz') && !name.startsWith('.'))
  const entries = await Promise.all(
    archives.map(async (name) => ({ name, time: (await stat(join(dir, name))).mtimeMs })),
  )
  for (const { name } of entries.sort((a, b) => b.time - a.time).slice(MAX_ARCHIVES))
    for (const path of [name, `${name}.json`]) await rm(join(dir, path), { force: true })
}
