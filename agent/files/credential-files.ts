// The files of a box with which programs get access to other systems: those of ~/.boxwood, such as the token for AWS, the secret
// files of environments, and the files of processes in /proc, which have their variables and their memory. A client that may not
// run commands must not read them. Programs on the box can: they run as the same user.
import type { Stats } from 'node:fs'
import { readdir, realpath, stat, statfs } from 'node:fs/promises'
import { join } from 'node:path'
import { ApiError } from '../../shared/errors.ts'
import { getSystemErrorCode } from './errors.ts'
import { resolvePath } from './paths.ts'
import { isInside } from './state-access.ts'

/** The directory of Boxwood in the home directory. */
const OWN_DIRECTORY = '.boxwood'
/** Of a directory that has more entries, the others are recognized by their path only. */
const MAX_ENTRIES = 1000
/** The type of statfs() for procfs. */
const PROC_SUPER_MAGIC = 0x9fa0

/** The files at the time of one request. */
export type Credentials = {
  /** @param path a real path @param stats of the file, undefined: only the path is known */
  includes(path: string, stats?: Stats): boolean
}

export class CredentialFiles {
  readonly #home: string
  /** The paths of secret files, as the coordinator sent them. undefined: it has not sent them yet. */
  #secretFiles: Set<string> | undefined

  /** @param home see resolvePath() */
  constructor(home: string) {
    this.#home = home
  }

  /** Replaces the paths of all secret files. */
  setSecretFiles(paths: readonly string[]): void {
    this.#secretFiles = new Set(paths)
  }

  /** Call it before the file is written. */
  addSecretFile(path: string): void {
    this.#secretFiles?.add(path)
  }

  /** @throws ApiError box_unreachable until the coordinator has sent the paths, and system errors */
  async find(): Promise<Credentials> {
    if (this.#secretFiles === undefined)
      throw new ApiError('box_unreachable', 'The agent has just connected. Try again.')
    const directory = await nullIfUnreachable(realpath(join(this.#home, OWN_DIRECTORY)))
    const paths = [...this.#secretFiles].map((path) => resolvePath(this.#home, path))
    if (directory !== null) paths.push(...(await listTree(directory)))
    const found = await Promise.all(paths.map((path) => nullIfUnreachable(stat(path))))
    const inodes = new Set(found.filter((stats) => stats !== null).map(getInode))
    return {
      includes: (path, stats) =>
        (directory !== null && isInside(path, directory)) ||
        // A hard link, or a directory that is mounted twice.
        (stats !== undefined && !stats.isDirectory() && inodes.has(getInode(stats))),
    }
  }
}

/**
 * Throws `permission_denied` for a file or directory of the credentials. A directory that contains some is permitted.
 * @param path a real path
 */
export async function checkNoCredential(
  path: string,
  stats: Stats | undefined,
  credentials: Credentials,
): Promise<void> {
  if (credentials.includes(path, stats))
    throw new ApiError(
      'permission_denied',
      `${path} has a credential of the box. Only keys that may run commands can read it.`,
    )
  if (stats !== undefined && (await isProcessFile(path)))
    throw new ApiError(
      'permission_denied',
      `${path} belongs to the kernel and its processes. Only keys that may run commands can read it.`,
    )
}

/** Whether a file belongs to procfs. */
export const isProcessFile = async (path: string | Buffer): Promise<boolean> =>
  (await statfs(path)).type === PROC_SUPER_MAGIC

const getInode = ({ dev, ino }: Stats): string => `${dev}:${ino}`

/** Breadth-first, so that many files of one directory do not hide those of another. */
async function listTree(root: string): Promise<string[]> {
  const paths: string[] = []
  const directories = [root]
  for (const directory of directories) {
    const entries = (await nullIfUnreachable(readdir(directory, { withFileTypes: true }))) ?? []
    for (const entry of entries) {
      if (paths.length + directories.length > MAX_ENTRIES) return paths
      const path = join(directory, entry.name)
      if (entry.isDirectory()) directories.push(path)
      else if (entry.isFile()) paths.push(path)
    }
  }
  return paths
}

/** Files that the agent cannot reach, the client cannot read either. */
async function nullIfUnreachable<T>(promise: Promise<T>): Promise<T | null> {
  try {
    return await promise
  } catch (error) {
    if (getSystemErrorCode(error) === null) throw error
    return null
  }
}
