// Reads a file of this machine, or stdin, for an environment.
import { readFileSync } from 'node:fs'
import { CliError, EXIT } from '../output/exit-codes.ts'
import { sanitize } from '../output/print.ts'

/** @param path `-` is stdin @throws CliError */
export function readLocalFile(path: string): Buffer {
  try {
    return readFileSync(path === '-' ? 0 : path)
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException
    const problem = code === 'ENOENT' ? 'no such file' : code === 'EISDIR' ? 'it is a directory' : message
    throw new CliError(EXIT.usage, `Cannot read ${sanitize(path)}: ${problem}.`, { cause: error })
  }
}
