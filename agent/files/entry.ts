// Describes a directory entry for the routes that list and inspect directories.
import type { Stats } from 'node:fs'
import { lstat, readlink, stat } from 'node:fs/promises'
import type { FileEntry, FileType } from '../../shared/api/files.ts'
import { MAX_REPORTED_INTEGER } from '../../shared/report-limits.ts'
import { createUserNames } from '../vitals/processes/user-names.ts'
import { getSystemErrorCode } from './errors.ts'

/** The names of users and groups. */
export type OwnerNames = { user(uid: number): string; group(gid: number): string }

/** Returns a function that reads the names again when they have changed. */
export function createOwnerNames(): () => OwnerNames {
  const users = createUserNames('/etc/passwd')
  // The lines of both files begin with a name, a password and a number.
  const groups = createUserNames('/etc/group')
  return () => ({ user: users.read(), group: groups.read() })
}

/** Does not follow a symbolic link. Rejects with system errors. */
export async function describeEntry(path: Buffer, name: Buffer, names: OwnerNames): Promise<FileEntry> {
  const stats = await lstat(path)
  return {
    ...describeName(name),
    type: getFileType(stats),
    size: Math.min(stats.size, MAX_REPORTED_INTEGER),
    mode: (stats.mode & 0o7777).toString(8).padStart(4, '0'),
    uid: stats.uid,
    gid: stats.gid,
    owner: names.user(stats.uid),
    group: names.group(stats.gid),
    mtime: formatTime(stats.mtimeMs),
    ...(stats.isSymbolicLink() && (await describeTarget(path))),
  }
}

function describeName(bytes: Buffer): Pick<FileEntry, 'name' | 'nameBase64'> {
  const name = bytes.toString('utf8')
  return Buffer.from(name).equals(bytes) ? { name } : { name, nameBase64: bytes.toString('base64') }
}

async function describeTarget(path: Buffer): Promise<Pick<FileEntry, 'target' | 'targetType'>> {
  const target = (await readlink(path, { encoding: 'buffer' })).toString('utf8')
  try {
    return { target, targetType: getFileType(await stat(path)) }
  } catch (error) {
    // A missing target, a loop, or a directory that the box user must not enter.
    if (getSystemErrorCode(error) === null) throw error
    return { target, targetType: null }
  }
}

function getFileType(stats: Stats): FileType {
  if (stats.isFile()) return 'file'
  if (stats.isDirectory()) return 'directory'
  if (stats.isSymbolicLink()) return 'symlink'
  if (stats.isFIFO()) return 'fifo'
  return stats.isSocket() ? 'socket' : 'device'
}

const MAX_TIME = Date.UTC(9999, 11, 31)

const formatTime = (ms: number): string | null =>
  ms >= 0 && ms <= MAX_TIME ? new Date(ms).toISOString() : null
