// Creates a box's directories on the host, owned by the box's user, and removes them whatever file modes the box has set.
import { execFile } from 'node:child_process'
import { randomBytes, randomInt } from 'node:crypto'
import { chmod, chown, lstat, mkdir, readdir, rename, rm } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { type BoxPaths, FIRST_BOX_UID, LAST_BOX_UID } from './machine-file.ts'
import { listPids, readUid } from './proc.ts'

const execFileAsync = promisify(execFile)

/** Entries of the boxes directory with this prefix are not boxes: probes, and boxes that are being removed. */
export const HIDDEN_PREFIX = '.'

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
    else await execFileAsync('chown', ['-hRP', `${uid}:${uid}`, dir])
  }
  await chmod(paths.dir, usesHostPaths && uid !== null ? 0o711 : 0o700)
  await chmod(paths.etc, 0o755)
}

/** Renames the directory to a hidden name, then removes it: `removeLeftovers` finishes an interrupted removal. */
export async function removeBoxDirectory(dir: string): Promise<void> {
  const hidden = `${HIDDEN_PREFIX}removed-${basename(dir)}-${randomBytes(4).toString('hex')}`
  const hiddenDir = join(dirname(dir), hidden)
  try {
    await rename(dir, hiddenDir)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return
    throw error
  }
  await removeTree(hiddenDir)
}

/** Removes probes and partly removed boxes of earlier coordinators. */
export async function removeLeftovers(boxesDir: string): Promise<void> {
  for (const name of await readdir(boxesDir)) {
    if (name.startsWith(HIDDEN_PREFIX)) await removeTree(join(boxesDir, name))
  }
}

/** Removes a directory with all entries. Does nothing when the directory does not exist. */
export async function removeTree(dir: string): Promise<void> {
  try {
    await makeTreeWritable(dir)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
  }
  await rm(dir, { recursive: true, force: true, maxRetries: 3 })
}

/** An unprivileged user cannot remove the entries of a directory that the box made unreadable or read-only. */
async function makeTreeWritable(dir: string): Promise<void> {
  await chmod(dir, 0o700)
  for (const entry of await readdir(dir, { withFileTypes: true })) {
    if (entry.isDirectory()) await makeTreeWritable(join(dir, entry.name))
  }
}
