// The directory of the project that contains this program: a checkout, or the package that npm has installed.
import { existsSync } from 'node:fs'
import { homedir } from 'node:os'
import { dirname, join } from 'node:path'
import { formatCommandName } from '../../shared/command-name.ts'

export const PROJECT_DIR = dirname(dirname(import.meta.dirname))

/** npm deletes the directory of a package when it updates the package. */
export const IS_NPM_PACKAGE = PROJECT_DIR.includes('/node_modules/')

/** The data directory that the box command finds from every directory without a `.boxwood`. */
export const DEFAULT_DATA_DIR = join(IS_NPM_PACKAGE ? homedir() : PROJECT_DIR, '.boxwood')

/** How the user types `boxwood` in this directory. */
export const formatBoxwoodName = (cwd = process.cwd()): string =>
  formatCommandName({ program: 'boxwood', projectDir: PROJECT_DIR, cwd, path: process.env.PATH })

/** Sets BOXWOOD_DATA to the data directory of the box command: BOXWOOD_DATA, else `.boxwood` in `cwd`, else the default. */
export function withDataDirectory(
  env: Readonly<Record<string, string | undefined>>,
  cwd: string,
): Record<string, string | undefined> {
  const local = join(cwd, '.boxwood')
  return { ...env, BOXWOOD_DATA: env.BOXWOOD_DATA || (existsSync(local) ? local : DEFAULT_DATA_DIR) }
}
