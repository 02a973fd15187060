// Where a command runs: which folder a cwd names, and what is wrong with one it cannot start in.
import { constants } from 'node:fs'
import { access, stat } from 'node:fs/promises'
import { resolve } from 'node:path'
import { ApiError } from '../../shared/errors.ts'
import { fileError } from '../files/errors.ts'

/** Relative and ~/ paths stand under the home directory (spec §4.14 rule 5). */
export function resolveCwd(home: string, cwd: string | undefined): string {
  if (cwd === undefined || cwd === '~') return home
  return resolve(home, cwd.startsWith('~/') ? `.${cwd.slice(1)}` : cwd)
}

/**
 * not_found, permission_denied, or invalid_path (it is a file); undefined when a command can start in it.
 *
 * The kernel says the same ENOENT for a missing folder and a missing shell, so this is asked only after a start has
 * failed, and a good start pays nothing.
 */
export async function cwdProblem(directory: string): Promise<unknown> {
  try {
    if (!(await stat(directory)).isDirectory()) {
      return new ApiError('invalid_path', `${directory}: not a directory.`)
    }
    await access(directory, constants.X_OK)
    return undefined
  } catch (error) {
    return fileError(error, directory)
  }
}
