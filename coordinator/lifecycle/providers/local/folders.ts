// A box's folders: made for its user, given to another, removed whatever modes the box left in them.
import { execFile } from 'node:child_process'
import { randomBytes, randomInt } from 'node:crypto'
import { chmod, chown, lstat, mkdir, readdir, rename, rm } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { type BoxPaths, FIRST_BOX_UID, LAST_BOX_UID } from './machine-file.ts'
import { listPids, uidOf } from './proc.ts'

const run = promisify(execFile)

/** Names in the boxes folder that begin like this are no boxes. */
export const HIDDEN = '.'

/** A uid that neither a box of this coordinator nor any process has. The range is wide enough for chance. */
export function chooseUid(taken: ReadonlySet<number>): number {
  const running = new Set(listPids().map(uidOf))
  for (;;) {
    const uid = randomInt(FIRST_BOX_UID, LAST_BOX_UID)
    if (!taken.has(uid) && !running.has(uid)) return uid
  }
}

/**
 * Makes what is missing of the box's folders and gives them to its user. `reachable`: the box user walks
 * through the box's folder itself (a plain process), instead of having its parts mounted.
 */
export async function makeFolders(paths: BoxPaths, uid: number | null, reachable: boolean): Promise<void> {
  for (const dir of [paths.dir, paths.root, paths.etc]) await mkdir(dir, { recursive: true })
  const own: [string, number][] = [
    [paths.home, 0o700],
    [paths.state, 0o700],
    [paths.tmp, 0o1777],
    [paths.varTmp, 0o1777],
  ]
  for (const [dir, mode] of own) {
    const made = await mkdir(dir, { recursive: true, mode })
    if (made !== undefined) await chmod(dir, mode)
    const owner = (await lstat(dir)).uid
    if (uid === null || owner === uid) continue
    if (made !== undefined) await chown(dir, uid, uid)
    // Made by a coordinator that ran as another user. -h and -P: links are given away, not what they point to.
    else await run('chown', ['-hRP', `${uid}:${uid}`, dir])
  }
  await chmod(paths.dir, reachable && uid !== null ? 0o711 : 0o700)
  await chmod(paths.etc, 0o755)
}

/** Takes the folder out of sight in one step, then removes it: after a crash in between, `sweep` goes on. */
export async function removeFolder(dir: string): Promise<void> {
  const condemned = join(dirname(dir), `${HIDDEN}removed-${basename(dir)}-${randomBytes(4).toString('hex')}`)
  try {
    await rename(dir, condemned)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return
    throw error
  }
  await removeTree(condemned)
}

/** Removes what earlier runs left half removed, and their probes. */
export async function sweep(boxesDir: string): Promise<void> {
  for (const name of await readdir(boxesDir)) {
    if (name.startsWith(HIDDEN)) await removeTree(join(boxesDir, name))
  }
}

export async function removeTree(dir: string): Promise<void> {
  try {
    await openUp(dir)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
  }
  await rm(dir, { recursive: true, force: true, maxRetries: 3 })
}

/** An ordinary user cannot remove from a folder that the box made unreadable or read-only. */
async function openUp(dir: string): Promise<void> {
  await chmod(dir, 0o700)
  for (const entry of await readdir(dir, { withFileTypes: true })) {
    if (entry.isDirectory()) await openUp(join(dir, entry.name))
  }
}
