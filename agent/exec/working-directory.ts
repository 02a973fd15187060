// Resolves the working directory of a command and diagnoses an unusable one.
import { constants } from 'node:fs'
import { access, stat } from 'node:fs/promises'
import { resolve } from 'node:path'
import { ApiError } from '../../shared/errors.ts'
import { toFileError } from '../files/errors.ts'

/** Relative and ~/ paths resolve under the home directory (spec §4.14 rule 5). */
export function resolveCwd(home: string, cwd: string | undefined): string {
  if (cwd === undefined || cwd === '~') return home
  return resolve(home, cwd.startsWith('~/') ? `.${cwd.slice(1)}` : cwd)
}

/**
 * Returns the ApiError for an unusable directory: not_found, permission_denied, or invalid_path when it is not a
 * directory. Returns undefined for a usable directory.
 *
 * Call after a failed start. The kernel reports ENOENT for a missing directory and for a missing shell alike.
 */
export async function findCwdError(dir: string): Promise<unknown> {
  try {
    if (!(await stat(dir)).isDirectory()) return new ApiError('invalid_path', `${dir} is not a directory.`)
    await access(dir, constants.X_OK)
    return undefined
  } catch (error) {
    return toFileError(error, dir)
  }
}
