// Resolves paths from requests (spec §4.14, rule 5) and encodes the real path for response headers.
import { lstat, readlink, realpath } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { ApiError } from '../../shared/errors.ts'
import { getSystemErrorCode } from './errors.ts'

/** Error codes of the fields of file requests (spec §7.2); fields that are not listed: invalid_request. */
export const PATH_ERROR_CODES = { path: 'invalid_path', from: 'invalid_path', to: 'invalid_path' } as const

/** Linux follows 40 symbolic links before it returns ELOOP. */
const MAX_LINKS = 40

/**
 * Resolves a relative or `~/` path against `home` and returns an absolute path unchanged. The path is not normalised:
 * `link/..` is the parent of the link's target, as in a shell command. Throws `invalid_path` when the path is missing or
 * contains a NUL or a newline.
 */
export function resolvePath(home: string, path: unknown): string {
  if (typeof path !== 'string' || path === '') throw new ApiError('invalid_path', 'path is required.')
  if (/[\0\n]/.test(path))
    throw new ApiError('invalid_path', 'path must not contain a NUL character or a newline.')
  if (path.startsWith('/')) return path
  if (path === '~') return home
  return `${home}/${path.startsWith('~/') ? path.slice(2) : path}`
}

/**
 * The real path of a file that will be written and may not exist yet. Follows symbolic links; for a dangling link,
 * returns the path of the missing target. Throws `invalid_path` for a path that ends in `/`, `.` or `..`, `not_found`
 * when the parent directory is missing, and system errors.
 */
export async function resolveWriteTarget(path: string): Promise<string> {
  if (/(^|\/)\.{0,2}$/.test(path))
    throw new ApiError('invalid_path', `${path} is the path of a directory. Add the name of the file.`)
  let current = path
  for (let links = 0; links < MAX_LINKS; links++) {
    const real = await nullIfMissing(realpath(current))
    if (real !== null) return real
    const parent = await resolveParent(dirname(current))
    const file = join(parent, basename(current))
    const stat = await nullIfMissing(lstat(file))
    if (stat === null || !stat.isSymbolicLink()) return file
    const link = await readlink(file)
    current = link.startsWith('/') ? link : `${parent}/${link}`
    if (current.endsWith('/'))
      throw new ApiError('invalid_path', `${path} links to a directory. Add the name of the file.`)
  }
  throw new ApiError('invalid_path', `${path}: too many symbolic links. Choose another path.`)
}

/**
 * The path of a directory entry: the real path of its directory, and its name. A symbolic link is the entry itself, not
 * its target. Throws `invalid_path` for a path without a name, such as one that ends in `..`, and `not_found` when the
 * directory is missing.
 */
export async function resolveEntry(path: string): Promise<string> {
  const trimmed = path.replace(/\/+$/, '')
  if (/(^|\/)\.{0,2}$/.test(trimmed))
    throw new ApiError('invalid_path', `${path} does not end with the name of an entry. Add the name.`)
  return join(await resolveParent(dirname(trimmed)), basename(trimmed))
}

async function resolveParent(dir: string): Promise<string> {
  const real = await nullIfMissing(realpath(dir))
  if (real === null)
    throw new ApiError('not_found', `The directory ${dir} does not exist on the box. Create it first.`)
  return real
}

/** Resolves to null instead of rejecting with ENOENT. */
export async function nullIfMissing<T>(promise: Promise<T>): Promise<T | null> {
  try {
    return await promise
  } catch (error) {
    if (getSystemErrorCode(error) === 'ENOENT') return null
    throw error
  }
}

/**
 * Encodes a path as a header value. Header values are printable ASCII and are trimmed, so all other characters,
 * `%` and a trailing space are percent-encoded as UTF-8. decodeURIComponent restores the path.
 */
export function encodePathHeader(path: string): string {
  return path.replace(/[^ -~]|%| $/gu, (character) => encodeURIComponent(character))
}

/** Joins paths whose names are bytes. */
export const joinPath = (dir: Buffer, child: Buffer): Buffer =>
  Buffer.concat([dir, Buffer.from(dir.toString() === '/' ? '' : '/'), child])
