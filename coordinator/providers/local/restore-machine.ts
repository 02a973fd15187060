// Creates a machine with the files of an archive or a clone. The machine exists when all files are complete and on disk.
import { lstat, mkdtemp, readdir, rename, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { syncDirectory } from '../../base/sync-directory.ts'
import type { BoxFiles } from '../parts/archives/tar.ts'
import { ArchiveError, type ArchiveKey } from '../provider.ts'
import { createBoxDirectories, HIDDEN_PREFIX, removeTree } from './directories.ts'
import { boxPaths, boxPathsIn, type Machine, writeMachine } from './machine-file.ts'
import { runCommand } from './run-command.ts'

/** The directories of a box in an archive. */
export const ARCHIVE_ROOTS = {
  files: ['home', 'tmp', 'var-tmp'],
  all: ['home', 'state', 'tmp', 'var-tmp'],
} as const

/** @param machine with the uid of the new box @param writeFiles writes the files into existing directories */
export async function restoreMachine(
  boxesDir: string,
  machine: Machine,
  source: ArchiveKey,
  writeFiles: (files: BoxFiles) => Promise<unknown>,
  signal?: AbortSignal,
): Promise<void> {
  const paths = boxPaths(boxesDir, machine.boxId)
  // A restart removes the directory of an interrupted restore in the background: the name must differ from it.
  const staging = boxPathsIn(await mkdtemp(join(boxesDir, `${HIDDEN_PREFIX}restore-${machine.boxId}-`)))
  try {
    // The user of the box enters its directories by their paths, and cannot replace them.
    await createBoxDirectories(staging, machine.uid, true)
    for (const dir of [staging.root, staging.etc]) await rm(dir, { recursive: true })
    await writeFiles({ dir: staging.dir, roots: ARCHIVE_ROOTS.all, uid: machine.uid })
    await checkArchiveDirectories(staging.dir, source)
    await writeMachine(staging, machine)
    await syncFiles(staging.dir, signal)
    // Without a machine file, the directory is not a machine.
    await removeTree(paths.dir)
    await rename(staging.dir, paths.dir)
    await syncDirectory(boxesDir)
  } finally {
    await removeTree(staging.dir)
  }
}

/** Throws ArchiveError unless the directory has only those of a box. Archives of other providers can contain anything. */
export async function checkArchiveDirectories(dir: string, { archiveId }: ArchiveKey): Promise<void> {
  const expected: readonly string[] = ARCHIVE_ROOTS.all
  for (const name of await readdir(dir)) {
    if (expected.includes(name) && (await lstat(join(dir, name))).isDirectory()) continue
    throw new ArchiveError(`Archive ${archiveId} is not an archive of a box. Use another snapshot.`)
  }
}

/** Writes the file system of the directory to disk. */
export const syncFiles = (dir: string, signal?: AbortSignal): Promise<unknown> =>
  runCommand(['sync', '-f', '--', dir], signal === undefined ? {} : { signal })
