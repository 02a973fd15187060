// Extracts a directory from a box. It appears complete or not at all.
import type { Stats } from 'node:fs'
import { chmod, mkdir, rename, utimes } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { CliError, EXIT } from '../output/exit-codes.ts'
import { sanitize } from '../output/print.ts'
import { type ExtractedDirectory, extractEntries } from './extract-entries.ts'
import { statIfExists, withTempPath } from './local-files.ts'
import { assertNoMergeConflicts, mergeDirectory } from './merge-directory.ts'
import { toFsPath } from './path-bytes.ts'
import type { Progress } from './progress.ts'

/**
 * Extracts to a temporary directory. A new `target` appears complete or not at all, by a rename. Into an existing
 * `target` the files are moved one by one, each atomically. Existing directories keep their modes.
 * @param existing the stats of `target`; null if `target` does not exist
 */
export async function extractDirectory(
  archive: AsyncIterable<Uint8Array>,
  target: string,
  existing: Stats | null,
  progress: Progress,
): Promise<void> {
  if (existing !== null && !existing.isDirectory())
    throw new CliError(
      EXIT.failed,
      `${sanitize(target)} exists and is not a directory, but the source is a directory.`,
    )
  const finalPath = target.replace(/(?<=.)\/+$/, '')
  // Rename works only within one file system, and an existing target may be a mount point: extract inside it.
  await withTempPath(existing === null ? dirname(finalPath) : finalPath, async (tempDir) => {
    await mkdir(toFsPath(tempDir), { mode: 0o700 })
    const { top, directories } = await extractEntries(archive, tempDir, progress)
    const root = join(tempDir, top)
    const final = directories.map((directory) => ({ ...directory, path: join(finalPath, directory.path) }))
    if (existing === null) {
      await rename(toFsPath(root), toFsPath(finalPath))
      return setAttributes(final)
    }
    await assertNoMergeConflicts(root, finalPath)
    const isNew: boolean[] = []
    for (const { path } of final) isNew.push((await statIfExists(path)) === null)
    await mergeDirectory(root, finalPath)
    return setAttributes(final.filter((_, index) => isNew[index]))
  })
}

/**
 * Call it last: a read-only directory can be neither filled nor moved, and each new entry changes the time. Deepest directories
 * first.
 */
async function setAttributes(directories: readonly ExtractedDirectory[]): Promise<void> {
  for (const { path, mode, mtime } of directories.toReversed()) {
    await chmod(toFsPath(path), mode)
    if (mtime !== null) await utimes(toFsPath(path), new Date(), mtime)
  }
}
