// Removes process directories in the background.
import type { Logger } from 'pino'
import { removeDirectory } from './record.ts'

export type DirectoryRemover = {
  /** Resolves when the directory is removed. Logs errors. */
  remove(dir: string): Promise<void>
  /** Resolves when no removal is in progress. */
  waitUntilIdle(): Promise<void>
}

export function createDirectoryRemover(log: Pick<Logger, 'error'>): DirectoryRemover {
  const removals = new Set<Promise<void>>()
  return {
    remove(path) {
      const removal = removeDirectory(path)
        .catch((err: unknown) => log.error({ err, path }, 'failed to remove a process directory'))
        .finally(() => removals.delete(removal))
      removals.add(removal)
      return removal
    },
    async waitUntilIdle() {
      await Promise.all(removals)
    },
  }
}
