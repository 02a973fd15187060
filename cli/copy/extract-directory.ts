// Extracts a tar archive from a box. The box is untrusted: no entry may be written outside the target.
import { once } from 'node:events'
import type { Stats } from 'node:fs'
import { chmod, mkdir, realpath, rename, symlink } from 'node:fs/promises'
import { dirname, join, sep } from 'node:path'
import type { ReadEntry, Unpack } from 'tar'
import { CliError, EXIT } from '../output/exit-codes.ts'
import { sanitize } from '../output/print.ts'
import { assertNoMergeConflicts, mergeDirectory, statIfExists, withTempPath } from './local-files.ts'
import type { Progress } from './progress.ts'

/**
 * Extracts to a temporary directory. A new `target` appears complete or not at all, by a rename. Into an existing
 * `target` the files are moved one by one, each atomically.
 * @param existing the stats of `target`; null if `target` does not exist
 */
export async function extractDirectory(
  archive: AsyncIterable<Buffer>,
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
    await mkdir(tempDir, { mode: 0o700 })
    const { root, modes } = await extractTo(archive, tempDir, progress)
    const finalModes = modes.map(({ path, mode }) => ({
      path: join(finalPath, path.slice(root.length)),
      mode,
    }))
    if (existing === null) {
      await rename(root, finalPath)
      return setModes(finalModes)
    }
    await assertNoMergeConflicts(root, finalPath)
    const isNew = await Promise.all(finalModes.map(async ({ path }) => (await statIfExists(path)) === null))
    await mergeDirectory(root, finalPath)
    return setModes(finalModes.filter((_, index) => isNew[index]))
  })
}

type DirectoryMode = { path: string; mode: number }
type Link = { path: string; target: string }

/** Call it last: a read-only directory can be neither filled nor moved. Sets the modes of the deepest directories first. */
async function setModes(directories: readonly DirectoryMode[]): Promise<void> {
  for (const { path, mode } of directories.toReversed()) await chmod(path, mode)
}

/** The agent omits them, the tar of a box does not. */
const SPECIAL_TYPES = ['FIFO', 'BlockDevice', 'CharacterDevice']

/**
 * Creates symbolic links last, so that no entry is written through one. Clears set-user-id and similar bits.
 * @returns the archive's top directory, and the modes for it and its subdirectories
 */
async function extractTo(
  archive: AsyncIterable<Buffer>,
  directory: string,
  progress: Progress,
): Promise<{ root: string; modes: DirectoryMode[] }> {
  const { extract } = await import('tar')
  const links: Link[] = []
  const modes: DirectoryMode[] = []
  let outsideError: CliError | null = null
  const shouldExtract = (entry: ReadEntry): boolean => {
    const path = resolveEntryPath(directory, entry.path)
    if (path === null) {
      // The error is thrown later: the parser would swallow it here.
      outsideError ??= createOutsideError(entry.path)
      return false
    }
    if (SPECIAL_TYPES.includes(entry.type)) {
      progress.print(`${sanitize(entry.path)}: skipped, not a regular file.`)
      return false
    }
    entry.mode = (entry.mode ?? 0o644) & 0o777
    if (entry.type === 'SymbolicLink') {
      links.push({ path, target: entry.linkpath ?? '' })
      return false
    }
    if (entry.type === 'Directory') {
      modes.push({ path, mode: entry.mode & ~process.umask() })
      entry.mode |= 0o700
    }
    return true
  }
  const unpack = extract({
    cwd: directory,
    strict: true,
    preserveOwner: false,
    filter: (_, entry) => shouldExtract(entry as ReadEntry),
  })
  await writeArchive(archive, unpack)
  if (outsideError !== null) throw outsideError
  const root = modes[0]?.path
  if (root === undefined)
    throw new CliError(EXIT.failed, 'The box sent an archive without a top-level directory.')
  for (const link of links) await createLink(directory, link)
  return { root, modes: modes.filter(({ path }) => path === root || path.startsWith(root + sep)) }
}

/** Unpack is not a Node stream: `close` means that everything is on disk, and it may emit several errors. */
async function writeArchive(archive: AsyncIterable<Buffer>, unpack: Unpack): Promise<void> {
  const closed = new Promise<void>((resolve, reject) => {
    unpack.on('close', resolve)
    unpack.on('error', reject)
  })
  closed.catch(() => undefined)
  for await (const chunk of archive) {
    if (!unpack.write(chunk)) await Promise.race([once(unpack, 'drain'), closed])
  }
  unpack.end()
  await closed
}

/** Returns the path without a trailing slash; null for an entry outside `directory`. */
function resolveEntryPath(directory: string, name: string): string | null {
  if (name.startsWith('/') || name.split('/').includes('..')) return null
  return join(directory, name).replace(/\/+$/, '')
}

const createOutsideError = (name: string): CliError =>
  new CliError(
    EXIT.failed,
    `The box sent an archive with an entry outside the copied directory: ${sanitize(name)}.`,
  )

async function createLink(directory: string, { path, target }: Link): Promise<void> {
  const parent = dirname(path)
  await mkdir(parent, { recursive: true })
  const expected = join(await realpath(directory), parent.slice(directory.length))
  if ((await realpath(parent)) !== expected) throw createOutsideError(path.slice(directory.length + 1))
  await symlink(target, path)
}
