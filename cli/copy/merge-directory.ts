// Merges a directory that has been copied to this machine into an existing one.
import { constants, type Dirent } from 'node:fs'
import { access, lstat, readdir, rename, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { CliError, EXIT } from '../output/exit-codes.ts'
import { sanitize } from '../output/print.ts'
import { nullIfMissing } from './local-files.ts'
import { decodePath, toFsPath } from './path-bytes.ts'

/**
 * Throws if not every entry of `from` can be moved into `to`: a directory and a non-directory have the same name, or a directory
 * of `to` is not writable or on another file system. Call it before mergeDirectory moves anything.
 */
export async function assertNoMergeConflicts(from: string, to: string): Promise<void> {
  let isChecked = false
  for (const entry of await list(from)) {
    const target = join(to, entry.name)
    const existing = await nullIfMissing(lstat(toFsPath(target)))
    if (existing !== null && entry.isDirectory !== existing.isDirectory()) {
      const conflict = entry.isDirectory
        ? 'is a directory on the box, but not on this machine'
        : 'is a directory on this machine, but not on the box'
      throw createConflict(`${sanitize(target)} ${conflict}`)
    }
    if (existing !== null && entry.isDirectory) await assertNoMergeConflicts(join(from, entry.name), target)
    else if (!isChecked) {
      await assertWritable(from, to)
      isChecked = true
    }
  }
}

async function assertWritable(from: string, to: string): Promise<void> {
  const isWritable = await access(toFsPath(to), constants.W_OK | constants.X_OK).then(
    () => true,
    () => false,
  )
  if (!isWritable) throw createConflict(`${sanitize(to)}: permission denied (this machine)`)
  const [source, target] = await Promise.all([stat(toFsPath(from)), stat(toFsPath(to))])
  if (source.dev !== target.dev)
    throw createConflict(`${sanitize(to)} is on another file system. Copy it separately`)
}

const createConflict = (problem: string): CliError =>
  new CliError(EXIT.failed, `${problem}. Nothing was changed.`)

/** Moves the entries of `from` into `to`, recursively. Each file atomically replaces an existing one. */
export async function mergeDirectory(from: string, to: string): Promise<void> {
  for (const entry of await list(from)) {
    const [source, target] = [join(from, entry.name), join(to, entry.name)]
    if (entry.isDirectory && (await nullIfMissing(lstat(toFsPath(target)))) !== null)
      await mergeDirectory(source, target)
    else await rename(toFsPath(source), toFsPath(target))
  }
}

async function list(directory: string): Promise<{ name: string; isDirectory: boolean }[]> {
  const entries: Dirent<Buffer>[] = await readdir(toFsPath(directory), {
    withFileTypes: true,
    encoding: 'buffer',
  })
  return entries.map((entry) => ({ name: decodePath(entry.name), isDirectory: entry.isDirectory() }))
}
