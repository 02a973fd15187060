// Parses sources and destinations as scp does: BOX:PATH is on a box, - is stdin or stdout.
import { basename, dirname, resolve } from 'node:path'
import { CliError, EXIT } from '../output/exit-codes.ts'
import { sanitize } from '../output/print.ts'

/** `text` is what the user typed. It and `path` may have lone surrogates: see path-bytes.ts. */
export type BoxPath = { type: 'box'; boxName: string; path: string; text: string }
export type LocalPath = { type: 'local'; path: string; text: string }
export type CopyPath = BoxPath | LocalPath | { type: 'stdio'; text: string }

const URL_PATTERN = /^(https?|ftps?|sftp|scp|ssh|rsync|s3|git|file):\/\//i
const WINDOWS_PATH_PATTERN = /^[A-Za-z]:\\/

/** A colon before the first slash means a path on a box; `./a:b` is local. */
export function parseCopyPath(text: string): CopyPath {
  if (text === '-') return { type: 'stdio', text }
  if (text === '') throw new CliError(EXIT.usage, 'The path is empty. Use `.` for the current directory.')
  if (URL_PATTERN.test(text))
    throw new CliError(
      EXIT.usage,
      `${sanitize(text)} is a URL, and box cp copies only files. Download it on the box, for example with curl -LO.`,
    )
  if (WINDOWS_PATH_PATTERN.test(text))
    throw new CliError(
      EXIT.usage,
      `${sanitize(text)} is a Windows path. Use a path with slashes, such as /mnt/c/notes.md.`,
    )
  const match = /^([^/:]+):(.*)$/s.exec(text)
  if (match?.[1] !== undefined)
    return { type: 'box', boxName: match[1].toWellFormed(), path: match[2] ?? '', text }
  return { type: 'local', path: text, text }
}

/** Whether a source means the contents of a directory, as for cp -r: `.`, `..`, `dir/.`. */
export const isContentsPath = (path: string): boolean => /(^|\/)\.\.?$/.test(path)

/** Whether a destination can only be a directory: it ends with a slash, or is `.`, `..`, `~` or empty. */
export const isDirectoryPath = (path: string): boolean => /(^|\/)\.{0,2}$/.test(path) || path === '~'

/** The name of a local source inside a destination directory. */
export const getLocalName = (path: string): string => basename(resolve(path))

/** The local name of a source on a box. Without a name, as for `fig:` and `fig:/`, that of the box. */
export function getDownloadName(path: string, hostname: string): string {
  const last = path.replace(/\/+$/, '').split('/').at(-1) ?? ''
  return last === '' || last === '~' || isContentsPath(last) ? hostname : last
}

/** The directory that must exist before `path` can be created. On a box '' is the home directory. */
export const getParent = (path: string): string => (path.includes('/') ? dirname(path) : '')

export const joinPath = (directory: string, name: string): string =>
  directory === '' ? name : `${directory.replace(/\/+$/, '')}/${name}`

/** Converts a path on a box to a command argument. Commands start in the home directory; `./` prevents an option. */
export function toCommandArgument(path: string): string {
  if (path === '' || path === '~' || path === '~/') return '.'
  if (path.startsWith('/')) return path
  return `./${path.startsWith('~/') ? path.slice(2) : path}`
}

/** Whether requests can carry the path: it is UTF-8, and has no newline, which the agent rejects. Commands can carry every path. */
export const isRequestPath = (path: string): boolean => path.isWellFormed() && !path.includes('\n')

/** `path` as the user writes it, such as fig:work. */
export const formatBoxPath = (boxName: string, path: string): string => sanitize(`${boxName}:${path}`)
