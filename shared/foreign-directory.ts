// Checks whether other users of this machine can read or replace a data directory, with its keys and its database.
import { lstatSync, realpathSync, type Stats, statSync } from 'node:fs'
import { basename, dirname, join, resolve } from 'node:path'

const OTHERS_WRITE = 0o002
const STICKY = 0o1000

/**
 * Returns a sentence that says why the directory must not be used, and what to do; null: it may be used. A directory that
 * does not exist yet is judged by the directories above it.
 * - The directory, and a link to it, belong to this user or to root.
 * - In no directory above it can every user replace an entry: with the sticky bit, as in /tmp, only the owner of an entry can.
 * @param uid the user of this process
 */
export function findForeignControl(dir: string, uid: number): string | null {
  const path = resolve(dir)
  const owner = findForeignOwner(path, uid)
  if (owner !== null)
    return `${path} belongs to another user (uid ${owner}), who could read and change what is written there. Run the command as that user, for example with \`sudo -u '#${owner}'\`, or set BOXWOOD_DATA to a directory of your own.`
  for (let parent = dirname(resolveExisting(path)); ; parent = dirname(parent)) {
    const mode = readStats(statSync, parent)?.mode ?? 0
    if ((mode & OTHERS_WRITE) !== 0 && (mode & STICKY) === 0)
      return `Every user of this machine can replace ${path}, because everyone can write to ${parent}. Run \`chmod o-w ${parent}\`, or set BOXWOOD_DATA to a directory elsewhere.`
    if (parent === dirname(parent)) return null
  }
}

/** null: the directory does not exist, or belongs to this user or to root. */
function findForeignOwner(path: string, uid: number): number | null {
  const owners = [readStats(lstatSync, path), readStats(statSync, path)].map((stats) => stats?.uid)
  return owners.find((owner) => owner !== undefined && owner !== uid && owner !== 0) ?? null
}

/** The real path, also of a directory that does not exist yet. */
function resolveExisting(path: string): string {
  if (readStats(statSync, path) !== null) return realpathSync(path)
  return join(resolveExisting(dirname(path)), basename(path))
}

function readStats(read: (path: string) => Stats, path: string): Stats | null {
  try {
    return read(path)
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    // EACCES: the use of the directory fails with a message of its own.
    if (code === 'ENOENT' || code === 'ENOTDIR' || code === 'EACCES') return null
    throw error
  }
}
