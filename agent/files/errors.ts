// Maps operating system errors about files to the error codes of the spec (§7.2). The only such mapping in the agent.
import { getSystemErrorMessage } from 'node:util'
import { ApiError, type ErrorCode } from '../../shared/errors.ts'

/** Codes of the API by code of the system error. */
const API_CODES_BY_SYSTEM_CODE: Readonly<Record<string, ErrorCode>> = {
  ENOENT: 'not_found',
  ENOTDIR: 'not_found',
  EACCES: 'permission_denied',
  EPERM: 'permission_denied',
  EROFS: 'permission_denied',
  EISDIR: 'invalid_path',
  ELOOP: 'invalid_path',
  ENAMETOOLONG: 'invalid_path',
  // open() of a socket, or of a device file that has no device.
  ENXIO: 'invalid_path',
  ENODEV: 'invalid_path',
  EEXIST: 'path_exists',
  ENOTEMPTY: 'directory_not_empty',
}

/** Returns the `code` of a system error, such as ENOENT, and null for any other error. */
export function getSystemErrorCode(error: unknown): string | null {
  if (!(error instanceof Error) || !('errno' in error) || !('code' in error)) return null
  return typeof error.code === 'string' ? error.code : null
}

/**
 * Converts a system error to an ApiError whose message names `path`. A system error that is not in the table (a full
 * disk, a quota, a file size limit, an I/O error) becomes `exec_failed`. Returns any other error unchanged.
 */
export function toFileError(error: unknown, path: string): unknown {
  const systemCode = getSystemErrorCode(error)
  if (systemCode === null) return error
  const message = error instanceof Error && 'errno' in error ? describeErrno(error.errno) : systemCode
  return new ApiError(API_CODES_BY_SYSTEM_CODE[systemCode] ?? 'exec_failed', `${path}: ${message}.`, {
    cause: error,
  })
}

function describeErrno(errno: unknown): string {
  return typeof errno === 'number' && errno < 0 ? getSystemErrorMessage(errno) : 'cannot be accessed'
}
