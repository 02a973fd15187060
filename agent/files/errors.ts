// Maps operating system errors about files to the error codes of the spec (§7.2). The only such mapping in the agent.
import { getSystemErrorMessage } from 'node:util'
import { ApiError, type ErrorCode } from '../../shared/errors.ts'

/** Codes of the API by code of the system error. */
const API_CODES_BY_SYSTEM_CODE: Readonly<Record<string, ErrorCode>> = {
  ENOENT: 'not_found',
  ENOTDIR: 'not_found',
  // A file of a process that has exited, and one that was removed on another machine.
  ESRCH: 'not_found',
  ESTALE: 'not_found',
  EACCES: 'permission_denied',
  EPERM: 'permission_denied',
  EROFS: 'permission_denied',
  // A program that runs, a mount point and a swap file.
  ETXTBSY: 'permission_denied',
  EBUSY: 'permission_denied',
  EISDIR: 'invalid_path',
  ELOOP: 'invalid_path',
  ENAMETOOLONG: 'invalid_path',
  // open() of a socket, or of a device file that has no device.
  ENXIO: 'invalid_path',
  ENODEV: 'invalid_path',
  ENOMEDIUM: 'invalid_path',
  // What the file system or the file does not have: a name, an offset, a size or an operation.
  EINVAL: 'invalid_path',
  EILSEQ: 'invalid_path',
  EOVERFLOW: 'invalid_path',
  ESPIPE: 'invalid_path',
  ENOTSUP: 'invalid_path',
  ENOTTY: 'invalid_path',
  ENODATA: 'invalid_path',
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

/**
 * Converts an error of a read. A file without blocks has no content on a disk: that of a file in /proc or /sys comes from the
 * kernel, which refuses to read some of them with any code, such as EIO. This becomes `invalid_path`.
 */
export function toReadError(error: unknown, path: string, { blocks }: { blocks: number }): unknown {
  const fileError = toFileError(error, path)
  const isFailure = fileError instanceof ApiError && fileError !== error && fileError.code === 'exec_failed'
  if (!isFailure || blocks > 0) return fileError
  return new ApiError('invalid_path', `${fileError.message} It has no content that can be read.`, {
    cause: error,
  })
}

function describeErrno(errno: unknown): string {
  return typeof errno === 'number' && errno < 0 ? getSystemErrorMessage(errno) : 'cannot be accessed'
}
