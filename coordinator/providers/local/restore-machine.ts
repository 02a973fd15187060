// Creates a machine with the files of an archive or a clone. The machine exists when all files are complete and on disk.
import { access, chmod, constants, lstat, mkdtemp, readdir, rename, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { syncDirectory } from '../../base/sync-directory.ts'
import type { BoxFiles } from '../parts/archives/tar.ts'
import { ArchiveError, type ArchiveKey } from '../provider.ts'
import { createBoxDirectories, HIDDEN_PREFIX, removeTree } from './directories.ts'
import { type BoxPaths, boxPaths, boxPathsIn, type Machine, writeMachine } from './machine-file.ts'
import { runCommand } from './run-command.ts'

/** The directories of a box in an archive. */
export const ARCHIVE_ROOTS = {
  files: ['home', 'tmp', 'var-tmp'],
  all: ['home', 'state', 'tmp', 'var-tmp'],
} as const

/** Files that a new machine gets. */
export type MachineSource<Written = unknown> = {
  key: ArchiveKey
  /** Writes the files into existing directories. */
  writeFiles(files: BoxFiles): Promise<Written>
}

/** @param machine with the uid of the new box */
export async function restoreMachine(
  boxesDir: string,
  machine: Machine,
  source: MachineSource,
  signal?: AbortSignal,
): Promise<void> {
  const { boxId, uid } = machine
  const paths = boxPaths(boxesDir, boxId)
  await withFiles(boxesDir, { name: `restore-${boxId}`, uid, source }, async (staging) => {
    await writeMachine(staging, machine)
    await syncFiles(staging.dir, signal)
    // Without a machine file, the directory is not a machine.
    await removeTree(paths.dir)
    await rename(staging.dir, paths.dir)
    await syncDirectory(boxesDir)
  })
}

/**
 * Like restoreMachine(), into the directories of a machine that runs, and has no files but those of its init. Returns false, with no
 * effect, when the files cannot be moved.
 */
export async function fillMachine(
  boxesDir: string,
  { boxId, uid }: Machine,
  source: MachineSource,
  signal?: AbortSignal,
): Promise<boolean> {
  const { dir } = boxPaths(boxesDir, boxId)
  return withFiles(boxesDir, { name: `restore-${boxId}`, uid, source }, (staging) =>
    moveFiles(staging.dir, dir, signal),
  )
}

/**
 * Moves the files of a box from the directory of a machine to another one, which is on the same file system. Returns false, with no
 * effect, when an ordinary user may not move one of them.
 */
export async function moveFiles(from: string, to: string, signal?: AbortSignal): Promise<boolean> {
  for (const root of ARCHIVE_ROOTS.files) {
    const dir = join(from, root)
    // The directories of a machine have this mode. Those of the box in the archive may be inaccessible.
    await chmod(dir, 0o700)
    if (!(await canMoveEntries(dir))) return false
  }
  for (const root of ARCHIVE_ROOTS.files) await moveEntries(join(from, root), join(to, root))
  await syncFiles(to, signal)
  return true
}

const listEntries = (dir: string) => readdir(dir, { encoding: 'buffer', withFileTypes: true })

/** A name may be any bytes. */
const joinName = (dir: string, name: Buffer): Buffer => Buffer.concat([Buffer.from(`${dir}/`), name])

/** The kernel writes the new parent into a directory that is moved, for which its user needs the permission. */
async function canMoveEntries(dir: string): Promise<boolean> {
  for (const entry of await listEntries(dir)) {
    if (!entry.isDirectory()) continue
    const isWritable = await access(joinName(dir, entry.name), constants.W_OK).then(
      () => true,
      () => false,
    )
    if (!isWritable) return false
  }
  return true
}

/** The last argument is the time of the last change before the directory was emptied. */
const COPY_PROPERTIES =
  'cp -dRT --preserve=mode,ownership,xattr -- "$1" "$2" && exec touch --no-create --date="@$3" -- "$2"'

/** Replaces entries with the same names. The directory gets the properties of the other one, which is empty then. */
async function moveEntries(from: string, to: string): Promise<void> {
  const { mtimeNs } = await lstat(from, { bigint: true })
  for (const { name } of await listEntries(from)) {
    const target = joinName(to, name)
    await rm(target, { force: true, recursive: true })
    await rename(joinName(from, name), target)
  }
  await runCommand(['/bin/sh', '-c', COPY_PROPERTIES, 'sh', from, to, formatSeconds(mtimeNs)])
}

const formatSeconds = (ns: bigint): string => {
  const digits = String(ns < 0n ? -ns : ns).padStart(10, '0')
  return `${ns < 0n ? '-' : ''}${digits.slice(0, -9)}.${digits.slice(-9)}`
}

/**
 * Calls `use` with the files in a directory of their own, and removes what it leaves there.
 * @param name the beginning of the name of the directory @param uid the owner of the files
 */
export async function withFiles<Written, Result>(
  boxesDir: string,
  { name, uid, source }: { name: string; uid: number | null; source: MachineSource<Written> },
  use: (staging: BoxPaths, written: Written) => Promise<Result>,
): Promise<Result> {
  // A restart removes the directory of an interrupted call in the background: the name must differ from it.
  const staging = boxPathsIn(await mkdtemp(join(boxesDir, `${HIDDEN_PREFIX}${name}-`)))
  try {
    // The user of the box enters its directories by their paths, and cannot replace them.
    await createBoxDirectories(staging, uid, true)
    for (const dir of [staging.root, staging.etc]) await rm(dir, { recursive: true })
    const written = await source.writeFiles({ dir: staging.dir, roots: ARCHIVE_ROOTS.all, uid })
    await checkArchiveDirectories(staging.dir, source.key)
    return await use(staging, written)
  } finally {
    await removeTree(staging.dir)
  }
}

/** Throws ArchiveError unless the directory has only those of a box. Archives of other providers can contain anything. */
async function checkArchiveDirectories(dir: string, { archiveId }: ArchiveKey): Promise<void> {
  const expected: readonly string[] = ARCHIVE_ROOTS.all
  for (const name of await readdir(dir)) {
    if (expected.includes(name) && (await lstat(join(dir, name))).isDirectory()) continue
    throw new ArchiveError(`Archive ${archiveId} is not an archive of a box. Use another snapshot.`)
  }
}

/** Writes the file system of the directory to disk. */
export const syncFiles = (dir: string, signal?: AbortSignal): Promise<unknown> =>
  runCommand(['sync', '-f', '--', dir], signal === undefined ? {} : { signal })
