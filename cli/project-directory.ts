// The directory of the project that contains this command: a checkout, or the package that npm has installed.
import { homedir } from 'node:os'
import { dirname, extname } from 'node:path'

export const PROJECT_DIR = dirname(import.meta.dirname)

/** npm deletes the directory of a package when it updates the package. */
export const IS_NPM_PACKAGE = PROJECT_DIR.includes('/node_modules/')

/** The directory of the default data directory `.boxwood`. */
export const DEFAULT_DATA_PARENT = IS_NPM_PACKAGE ? homedir() : PROJECT_DIR

/** The extension of the program's files: `.ts`, in the npm package `.js`, because Node runs no TypeScript in node_modules. */
export const SOURCE_EXTENSION = extname(import.meta.filename)
