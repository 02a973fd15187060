// Watches the credential files of all providers with chokidar, also files whose directories do not exist yet.
import { stat } from 'node:fs/promises'
import { dirname } from 'node:path'
import type { FSWatcher } from 'chokidar'
import type { Logger } from 'pino'

export type CredentialWatcher = {
  /** Watches these files, and no longer those of the previous call. @param files absolute paths */
  watch(files: readonly string[]): Promise<void>
  close(): Promise<void>
}

/**
 * Does not keep the process alive.
 * @param onChange called when a file, or a directory above it, has been created, changed or removed
 */
export function createCredentialWatcher(home: string, log: Logger, onChange: () => void): CredentialWatcher {
  let watched = ''
  let watcher: FSWatcher | undefined
  let ready = Promise.withResolvers<void>()
  let closed = false

  /**
   * Watches whole directories and ignores everything in them, except the files and the directories on the way to them. An
   * event for an ignored entry takes 0.4 ms. With the files as roots, chokidar would read the home directory again after
   * each change of an entry in it, while a file is missing.
   */
  async function start(files: readonly string[]): Promise<void> {
    const roots = await Promise.all(files.map((file) => findRoot(home, file)))
    const allowed = new Set(files.flatMap((file, index) => listPathsBetween(roots[index] ?? home, file)))
    // chokidar is imported on first use: most boxes run no coding agent in their first seconds.
    const { watch } = await import('chokidar')
    if (closed) return
    watcher = watch([...new Set(roots)], {
      ignored: (path) => !allowed.has(path),
      ignoreInitial: true,
      persistent: false,
      ignorePermissionErrors: true,
      atomic: false,
    })
    watcher.on('all', onChange)
    // For example, the user has too many watches. The files are also read at intervals.
    watcher.on('error', (err) => log.warn({ err }, 'failed to watch credential files of coding agents'))
    ready = Promise.withResolvers<void>()
    watcher.once('ready', ready.resolve)
    await ready.promise
    if (closed) return
    // The files may have changed before they were watched.
    onChange()
  }

  return {
    async watch(files) {
      const key = [...files].sort().join('\0')
      if (closed || key === watched) return
      watched = key
      await watcher?.close()
      await start(files)
    },
    async close() {
      closed = true
      ready.resolve()
      await watcher?.close()
    },
  }
}

/** The home directory; for a file outside of it, the nearest directory above it that exists. */
async function findRoot(home: string, file: string): Promise<string> {
  if (file.startsWith(`${home}/`)) return home
  let dir = dirname(file)
  while (dir !== dirname(dir) && !(await isDirectory(dir))) dir = dirname(dir)
  return dir
}

const isDirectory = async (path: string): Promise<boolean> =>
  (await stat(path).catch(() => null))?.isDirectory() ?? false

/** The root, the file, and the directories between them. */
function listPathsBetween(root: string, file: string): string[] {
  const paths = [root]
  for (let path = file; path !== root && path !== dirname(path); path = dirname(path)) paths.push(path)
  return paths
}
