// The list of the entries of a directory of a box.
import type { FileEntry } from '../../shared/api/files.ts'
import { FILE_TYPES } from '../../shared/field-values.ts'
import type { List } from '../lists/list.ts'
import { formatAge, formatBytes } from '../output/format.ts'

const TYPE_LETTERS: Record<FileEntry['type'], string> = {
  file: '-',
  directory: 'd',
  symlink: 'l',
  fifo: 'p',
  socket: 's',
  device: 'b',
}

/** Formats as `ls -l` does, such as drwxr-xr-x. */
export function formatMode({ type, mode }: Pick<FileEntry, 'type' | 'mode'>): string {
  const bits = Number.parseInt(mode, 8)
  const letters = [...'rwxrwxrwx'].map((letter, index) => ((bits >> (8 - index)) & 1 ? letter : '-'))
  const special = [
    [0o4000, 2, 's'],
    [0o2000, 5, 's'],
    [0o1000, 8, 't'],
  ] as const
  for (const [bit, index, letter] of special)
    if (bits & bit) letters[index] = letters[index] === 'x' ? letter : letter.toUpperCase()
  return TYPE_LETTERS[type] + letters.join('')
}

/** The name, with the target of a symbolic link. */
export const formatName = ({ name, target }: FileEntry): string =>
  target === undefined ? name : `${name} -> ${target}`

export const formatSize = ({ type, size }: FileEntry): string => (type === 'file' ? formatBytes(size) : '-')

export const createFileList = (path: string): List<FileEntry> => ({
  columns: [
    { header: 'MODE', cell: formatMode },
    { header: 'OWNER', cell: ({ owner }) => owner },
    { header: 'GROUP', cell: ({ group }) => group, isWide: true },
    { header: 'SIZE', cell: formatSize, isShort: true },
    { header: 'BYTES', cell: ({ size }) => String(size), isWide: true },
    {
      header: 'MODIFIED',
      cell: ({ mtime }, now) => (mtime === null ? '-' : `${formatAge(mtime, now)} ago`),
      isRelativeTime: true,
      isShort: true,
    },
    { header: 'MODIFIED AT', cell: ({ mtime }) => mtime ?? '-', isWide: true },
    {
      header: 'NAME',
      cell: (entry) => ({ text: formatName(entry), color: entry.type === 'directory' ? 'cyan' : null }),
    },
  ],
  getId: ({ name, nameBase64 }) => nameBase64 ?? name,
  getName: ({ name }) => name,
  filters: {
    name: { get: ({ name }) => name },
    type: { get: ({ type }) => type, values: FILE_TYPES },
    owner: { get: ({ owner }) => owner },
  },
  getEmptyMessage: (isFiltered) => (isFiltered ? `No matching files in ${path}.` : `${path} is empty.`),
})
