// Creates a box's directories on the host, owned by the box's user, and removes them whatever file modes the box has set.
import { randomInt } from 'node:crypto'
import { chmod, chown, lstat, mkdir, readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { listPids, readUid } from '../parts/proc.ts'
import { type BoxPaths, FIRST_BOX_UID, LAST_BOX_UID } from './machine-file.ts'
import { runCommand } from './run-command.ts'

export const isRoot = process.getuid?.() === 0

/** Entries of the boxes directory with this prefix are not boxes: probes, and what earlier versions did not remove. */
export const HIDDEN_PREFIX = '.'
/** The complete copies of machines, which new boxes take over: see machine-copies.ts. */
export const COPY_PREFIX = `${HIDDEN_PREFIX}copy-`

/** A random uid of the box range that neither a box of this coordinator nor a running process has. */
export function chooseUid(usedUids: ReadonlySet<number>): number {
  const runningUids = new Set(listPids().map(readUid))
  for (;;) {
    const uid = randomInt(FIRST_BOX_UID, LAST_BOX_UID)
    if (!usedUids.has(uid) && !runningUids.has(uid)) return uid
  }
}

/**
 * Creates the missing directories of the box and changes their owner to the box's user.
 * @param usesHostPaths the box has no mounts (level process): the box user accesses the directories by their host paths.
 */
export async function createBoxDirectories(
  paths: BoxPaths,
  uid: number | null,
  usesHostPaths: boolean,
): Promise<void> {
  for (const dir of [paths.dir, paths.root, paths.etc]) await mkdir(dir, { recursive: true })
  for (const dir of [paths.home, paths.state, paths.tmp, paths.varTmp]) {
    const created = await mkdir(dir, { recursive: true, mode: 0o700 })
    // At level process other boxes can enter `paths.dir`, so also the temporary directories are private.
    await chmod(dir, 0o700)
    const owner = (await lstat(dir)).uid
    if (uid === null || owner === uid) continue
    if (created !== undefined) await chown(dir, uid, uid)
    // The directory was created by a coordinator that ran as another user. -h and -P: change symlinks, not their targets.
    else await runCommand(['chown', '-hRP', '--', `${uid}:${uid}`, dir])
  }
  await chmod(paths.dir, usesHostPaths && uid !== null ? 0o711 : 0o700)
  await chmod(paths.etc, 0o755)
}

/** Creates a private directory of the user, which can be reached by its path. */
export async function createOwnedDirectory(parent: string, dir: string, uid: number | null): Promise<void> {
  await chmod(parent, uid === null ? 0o700 : 0o711)
  await mkdir(dir, { mode: 0o700 })
  if (uid !== null) await chown(dir, uid, uid)
}

/** The probes and the incomplete machines that an earlier coordinator did not remove. */
export async function listLeftovers(boxesDir: string): Promise<string[]> {
  const names = await readdir(boxesDir)
  return names
    .filter((name) => name.startsWith(HIDDEN_PREFIX) && !name.startsWith(COPY_PREFIX))
    .map((name) => join(boxesDir, name))
}

/** `find -delete` opens each directory relative to its parent, so the length of a path is not limited. */
const EMPTY_DIRECTORY = `find . -xdev -mindepth 1 -delete 2>/dev/null && exit
chmod -R u+rwX .
exec find . -xdev -mindepth 1 -delete`

/**
 * Removes a directory with all entries, whatever their modes and the lengths of their paths. Does nothing when the
 * directory does not exist. Throws when anything is left. No box may be able to change the parent directory.
 */
export async function removeTree(dir: string, signal?: AbortSignal): Promise<void> {
  const options = signal === undefined ? {} : { signal }
  // The deletion of a box calls this for each region.
  if ((await lstatIfExists(dir)) === null) return
  await emptyBoxDirectories(dir, options)
  try {
    await runCommand(['rm', '-rf', '--one-file-system', '--', dir], options)
  } catch (error) {
    throw new Error(`Failed to remove ${dir}: ${(error as Error).message}. Remove the directory by hand.`, {
      cause: error,
    })
  }
}

/**
 * Empties each directory that belongs to a box, as the box's user: what a box does to its directories meanwhile, such as
 * replacing them by symlinks, can only remove files that the box itself can remove. Root enters only its own directories.
 */
async function emptyBoxDirectories(dir: string, options: { signal?: AbortSignal }): Promise<void> {
  const stats = await lstatIfExists(dir)
  if (!stats?.isDirectory()) return
  if (isRoot && stats.uid === 0) {
    for (const entry of await readdir(dir, { withFileTypes: true })) {
      if (entry.isDirectory()) await emptyBoxDirectories(join(dir, entry.name), options)
    }
    return
  }
  // A box can make its directory inaccessible, also to itself.
  await chmod(dir, 0o700)
  const user = isRoot ? { user: { uid: stats.uid, gid: stats.gid } } : {}
  await runCommand(['/bin/sh', '-c', EMPTY_DIRECTORY], { ...options, ...user, cwd: dir }).catch(() => {
    // Entries of other users are left, or the machine cannot run the command. `rm` removes them or reports why not.
  })
}

const lstatIfExists = (path: string) =>
  lstat(path).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return null
    throw error
  })
