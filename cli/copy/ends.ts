// The two ends of a copy, as scp writes them: NAME:path is on a box, - is stdin or stdout, the rest is here.
import { basename, resolve } from 'node:path'
import { EXIT, Failure } from '../exit-codes.ts'

export type End =
  | { where: 'box'; box: string; path: string }
  | { where: 'here'; path: string }
  | { where: 'pipe' }

/** A colon before the first slash makes it a path on a box; ./a:b is one here. */
export function parseEnd(text: string): End {
  if (text === '-') return { where: 'pipe' }
  const match = /^([^/:]+):(.*)$/s.exec(text)
  if (match?.[1] !== undefined) return { where: 'box', box: match[1], path: match[2] ?? '' }
  if (text === '') throw new Failure(EXIT.usage, 'An empty path names nothing; the folder here is `.`.')
  return { where: 'here', path: text }
}

/** Whether a source means what is in the folder rather than the folder: `.`, `..`, `folder/.`. As for cp -r. */
export const meansContents = (path: string): boolean => /(^|\/)\.\.?$/.test(path)

/** A destination that can only be a folder. */
export const meansFolder = (path: string): boolean => /(^|\/)\.{0,2}$/.test(path) || path === '~'

/** The name that a local source gets in a destination folder. */
export const localName = (path: string): string => basename(resolve(path))

/** The name that a source on a box gets here; `real` is its real path, for a path such as `fig:` or `fig:~`. */
export function boxName(path: string, real: string): string {
  const last = path.replace(/\/+$/, '').split('/').at(-1) ?? ''
  return last === '' || last === '~' || meansContents(last) ? basename(real) : last
}

/** A path on a box as a word for its shell: the home directory is where commands run. */
export function shellPath(path: string): string {
  if (path === '' || path === '~') return '.'
  if (path.startsWith('/')) return path
  return `./${path.startsWith('~/') ? path.slice(2) : path}`
}
