// Formats paths and `box` commands so that they can be pasted into a terminal in the directory of the user.
import { existsSync } from 'node:fs'
import { join, relative } from 'node:path'
import { formatCommandName } from '../../shared/command-name.ts'
import { shellQuote } from '../../shared/shell-quote.ts'
import { DEFAULT_DATA_DIR, IS_NPM_PACKAGE, PROJECT_DIR } from '../base/project-directory.ts'

/** The `box` command for this data directory, which can be pasted into a terminal in the directory of the user. */
export const formatBoxCommand = (dataDir: string, userDir = getUserDirectory()): string =>
  formatDataVariable(dataDir, userDir) + formatBoxName(userDir)

export const formatBoxName = (userDir: string): string =>
  formatCommandName({ projectDir: PROJECT_DIR, cwd: userDir, path: process.env.PATH })

/** The command that starts a coordinator in the same way as this one was started. */
export function getStartCommand(userDir = getUserDirectory()): string {
  // `box up` waits for the message of a coordinator on an IPC channel.
  if (process.send !== undefined) return `${formatBoxName(userDir)} up`
  return IS_NPM_PACKAGE ? 'boxwood' : 'npm start'
}

/** npm starts a script in the project directory; INIT_CWD is the directory of the user. */
export function getUserDirectory(): string {
  const { npm_lifecycle_event, INIT_CWD } = process.env
  return (npm_lifecycle_event === 'start' && INIT_CWD) || process.cwd()
}

/** Empty for a data directory that the box command finds by itself. */
function formatDataVariable(dir: string, userDir: string): string {
  const userDataDir = join(userDir, '.boxwood')
  const isFound = dir === userDataDir || (dir === DEFAULT_DATA_DIR && !existsSync(userDataDir))
  return isFound ? '' : `BOXWOOD_DATA=${shellQuote(formatPath(dir, userDir))} `
}

/** A relative path, unless the file is outside the directory of the user or that is the root directory. */
export function formatPath(path: string, userDir: string): string {
  const relativePath = relative(userDir, path)
  return relativePath === '' || relativePath.startsWith('..') || userDir === '/' ? path : relativePath
}
