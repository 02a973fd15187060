// Which file a path from a request means (spec §4.14, rule 5), and the real path that every answer echoes.
import { lstat, readlink, realpath } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { ApiError } from '../../shared/errors.ts'
import { errnoOf } from './errors.ts'

/** As many links as Linux follows before it says ELOOP. */
const MAX_LINKS = 40

/**
 * A relative or `~/` path under `home`, an absolute path as it is. Nothing is simplified: `link/..` is the parent of
 * what the link points to, as it is for a command. Throws `invalid_path` when there is no path, or a NUL or newline.
 */
export function resolvePath(home: string, path: unknown): string {
  if (typeof path !== 'string' || path === '') throw new ApiError('invalid_path', 'Say which path.')
  if (/[\0\n]/.test(path)) throw new ApiError('invalid_path', 'A path holds no NUL and no newline.')
  if (path.startsWith('/')) return path
  if (path === '~') return home
  return `${home}/${path.startsWith('~/') ? path.slice(2) : path}`
}

/**
 * The real path of a file that is to be written and may not exist yet: every link is followed, a dangling one to
 * the file it would create. Throws `invalid_path` for a path that can only mean a folder, and errors of the system.
 */
export async function realTarget(path: string): Promise<string> {
  if (/(^|\/)\.{0,2}$/.test(path)) throw new ApiError('invalid_path', `${path} is a directory.`)
  let wanted = path
  for (let links = 0; links < MAX_LINKS; links++) {
    const real = await existing(realpath(wanted))
    if (real !== null) return real
    const parent = await realpath(dirname(wanted))
    const file = join(parent, basename(wanted))
    const stat = await existing(lstat(file))
    if (stat === null || !stat.isSymbolicLink()) return file
    const link = await readlink(file)
    wanted = link.startsWith('/') ? link : `${parent}/${link}`
    if (wanted.endsWith('/')) throw new ApiError('invalid_path', `${path} links to a directory.`)
  }
  throw new ApiError('invalid_path', `${path}: too many symbolic links.`)
}

/** Null for what does not exist. */
export async function existing<T>(asked: Promise<T>): Promise<T | null> {
  try {
    return await asked
  } catch (error) {
    if (errnoOf(error) === 'ENOENT') return null
    throw error
  }
}

/**
 * A path as a header value. Headers are ASCII, so what is not (and `%` itself, and a space at the end, which would
 * be trimmed) is percent-encoded as UTF-8: decodeURIComponent gives the path back, and most paths stay as they are.
 */
export function pathHeader(path: string): string {
  return path.replace(/[^ -~]|%| $/gu, (character) => encodeURIComponent(character))
}
