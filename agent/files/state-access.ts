// Keeps the file routes out of the agent's state directory, which contains the box's token. A key that may only read files
// must not be able to act as the agent. Programs on the box can read the directory: they run as the same user.
import { relative, sep } from 'node:path'
import { ApiError } from '../../shared/errors.ts'

/** The output logs of detached commands, relative to the state directory. Clients download them (`logPath`). */
const LOG_PATH = /^exec\/[^/]+\/(stdout|stderr)$/

/** Throws `permission_denied` for a file of the agent's state that is not an output log. Both paths are real paths. */
export function checkReadable(path: string, stateDir: string): void {
  if (!isInside(path, stateDir) || LOG_PATH.test(relative(stateDir, path))) return
  throw new ApiError(
    'permission_denied',
    `${path} belongs to the agent. Of its files only the output logs of detached commands can be read.`,
  )
}

/** Throws `permission_denied` for a file of the agent's state. Both paths are real paths. */
export function checkWritable(path: string, stateDir: string): void {
  if (!isInside(path, stateDir)) return
  throw new ApiError('permission_denied', `${path} belongs to the agent. Choose another path.`)
}

/**
 * Throws `permission_denied` for an entry that must not be moved or removed: the agent's state, the home directory, and
 * the directories that contain one of them, such as `/`. All paths are real paths.
 */
export function checkMovable(path: string, { stateDir, home }: { stateDir: string; home: string }): void {
  checkWritable(path, stateDir)
  if (isInside(stateDir, path))
    throw new ApiError('permission_denied', `${path} contains the files of the agent. Choose another path.`)
  if (path === '/' || isInside(home, path))
    throw new ApiError(
      'permission_denied',
      `${path} contains the home directory of the box user. Choose another path.`,
    )
}

export const isInside = (path: string, dir: string): boolean => path === dir || path.startsWith(dir + sep)
