// What the operating system says about a path or a disk, in the codes of the spec (§7.2). The only such mapping.
import { getSystemErrorMessage } from 'node:util'
import { ApiError, type ErrorCode } from '../../shared/errors.ts'

const CODES: Readonly<Record<string, ErrorCode>> = {
  ENOENT: 'not_found',
  ENOTDIR: 'not_found',
  EACCES: 'permission_denied',
  EPERM: 'permission_denied',
  EROFS: 'permission_denied',
  EISDIR: 'invalid_path',
  ELOOP: 'invalid_path',
  ENAMETOOLONG: 'invalid_path',
  // Opening a socket, or a device nothing stands behind.
  ENXIO: 'invalid_path',
  ENODEV: 'invalid_path',
}

/** The errno name of an error of the operating system (`ENOENT`), null for any other error. */
export function errnoOf(error: unknown): string | null {
  if (!(error instanceof Error) || !('errno' in error) || !('code' in error)) return null
  return typeof error.code === 'string' ? error.code : null
}

/**
 * Names `path` in what went wrong with it. A full disk, a quota, a size limit or a failing disk is `exec_failed` with
 * the box's own words. What is no error of the operating system is returned as it came.
 */
export function fileError(error: unknown, path: string): unknown {
  const errno = errnoOf(error)
  if (errno === null) return error
  const words = error instanceof Error && 'errno' in error ? describe(error.errno) : errno
  return new ApiError(CODES[errno] ?? 'exec_failed', `${path}: ${words}.`, { cause: error })
}

function describe(errno: unknown): string {
  return typeof errno === 'number' && errno < 0 ? getSystemErrorMessage(errno) : 'it cannot be used'
}
