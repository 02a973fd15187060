// Maps operating system errors about files to the error codes of the spec (§7.2). The only such mapping in the agent.
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
  // Opening a socket, or a device file without a device.
  ENXIO: 'invalid_path',
  ENODEV: 'invalid_path',
}

/** The errno name of a system error (`ENOENT`), or null for any other error. */
export function getErrno(error: unknown): string | null {
  if (!(error instanceof Error) || !('errno' in error) || !('code' in error)) return null
  return typeof error.code === 'string' ? error.code : null
}

/**
 * Converts a system error to an ApiError whose message names `path`. An errno without a code of its own (a full disk, a
 * quota, a file size limit, an I/O error) is `exec_failed` with the system's message. Other errors are returned unchanged.
 */
export function toFileError(error: unknown, path: string): unknown {
  const errno = getErrno(error)
  if (errno === null) return error
  const message = error instanceof Error && 'errno' in error ? describeErrno(error.errno) : errno
  return new ApiError(CODES[errno] ?? 'exec_failed', `${path}: ${message}.`, { cause: error })
}

function describeErrno(errno: unknown): string {
  return typeof errno === 'number' && errno < 0 ? getSystemErrorMessage(errno) : 'cannot be accessed'
}
