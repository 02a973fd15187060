// Parses the source and the destination of a copy as scp does: BOX:PATH is on a box, - is stdin or stdout.
import { basename, resolve } from 'node:path'
import { CliError, EXIT } from '../exit-codes.ts'

export type CopyPath =
  | { type: 'box'; boxName: string; path: string }
  | { type: 'local'; path: string }
  | { type: 'stdio' }

/** A colon before the first slash means a path on a box; `./a:b` is local. */
export function parseCopyPath(text: string): CopyPath {
  if (text === '-') return { type: 'stdio' }
  const match = /^([^/:]+):(.*)$/s.exec(text)
  if (match?.[1] !== undefined) return { type: 'box', boxName: match[1], path: match[2] ?? '' }
  if (text === '') throw new CliError(EXIT.usage, 'The path is empty. Use `.` for the current directory.')
  return { type: 'local', path: text }
}

/** Whether a source means the contents of a directory, as for cp -r: `.`, `..`, `dir/.`. */
export const isContentsPath = (path: string): boolean => /(^|\/)\.\.?$/.test(path)

/** Whether a destination can only be a directory: it ends with a slash, or is `.`, `..`, `~` or empty. */
export const isDirectoryPath = (path: string): boolean => /(^|\/)\.{0,2}$/.test(path) || path === '~'

/** The name of a local source inside a destination directory. */
export const getLocalName = (path: string): string => basename(resolve(path))

/** The local name of a source on a box. A path without a name, such as `fig:` or `fig:~`, gets the name of `realPath`. */
export function getDownloadName(path: string, realPath: string): string {
  const last = path.replace(/\/+$/, '').split('/').at(-1) ?? ''
  return last === '' || last === '~' || isContentsPath(last) ? basename(realPath) : last
}

/** Converts a path on a box to a command argument. Commands start in the home directory; `./` prevents an option. */
export function toCommandArgument(path: string): string {
  if (path === '' || path === '~') return '.'
  if (path.startsWith('/')) return path
  return `./${path.startsWith('~/') ? path.slice(2) : path}`
}
