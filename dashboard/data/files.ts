// Paths and entries of the files of a box, as the page of files shows them.
import type { FileEntry } from '../../shared/api/files.ts'
import { formatBoxPath } from './routes.ts'

export const HOME = '~'

export const joinPath = (directory: string, name: string): string =>
  directory.endsWith('/') ? directory + name : `${directory}/${name}`

/** The path that a text in a dialog means: absolute, or relative to the directory. */
export const resolveTarget = (directory: string, text: string): string =>
  text.startsWith('/') || text.startsWith('~/') ? text : joinPath(directory, text)

/** The directories from the root to the path itself. @param path absolute */
export function listParents(path: string): { name: string; path: string }[] {
  const names = path.split('/').filter(Boolean)
  return [
    { name: '/', path: '/' },
    ...names.map((name, index) => ({ name, path: `/${names.slice(0, index + 1).join('/')}` })),
  ]
}

/** Whether the API has a path for the entry, so that requests can name it. */
export const hasPath = ({ name, nameBase64 }: Pick<FileEntry, 'name' | 'nameBase64'>): boolean =>
  nameBase64 === undefined && !/[\n\0]/.test(name)

/** The type of what a path leads to. */
export const getType = ({ type, targetType }: FileEntry): FileEntry['type'] | null =>
  type === 'symlink' ? (targetType ?? null) : type

export const FILE_SORTS = { name: 'Name', size: 'Size', changed: 'Last change' } as const
export type FileSort = keyof typeof FILE_SORTS

/** Entries that are equal stay in the order of the API, which is that of their names. */
export function sortEntries(entries: readonly FileEntry[], sort: FileSort): FileEntry[] {
  if (sort === 'size') return entries.toSorted((a, b) => b.size - a.size)
  if (sort === 'changed') return entries.toSorted((a, b) => getTime(b) - getTime(a))
  return [...entries]
}

const getTime = ({ mtime }: FileEntry): number => (mtime === null ? 0 : Date.parse(mtime))

/** The page of a directory, or of a file in it. Relative to the base of the document. */
export function formatFilesPath(boxName: string, path: string, file: string | null = null): string {
  const params = new URLSearchParams({ path, ...(file !== null && { file }) })
  return `${formatBoxPath(boxName, 'files')}?${params}`
}

/** @param query such as ?path=/tmp&file=a.txt */
export function parseFilesQuery(query: string): { path: string; file: string | null } {
  const params = new URLSearchParams(query)
  return { path: params.get('path') || HOME, file: params.get('file') || null }
}
