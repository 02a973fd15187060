// Reads and writes small files of the state directory without waiting. The user of the box, and so each coding agent, can
// replace them by anything, such as a FIFO, a directory or a huge file.
import { closeSync, constants, fstatSync, openSync, readSync } from 'node:fs'

const { O_NONBLOCK, O_NOFOLLOW, O_RDONLY, O_WRONLY, O_CREAT, O_APPEND } = constants
/** FIFO without a reader, directory, symbolic link, missing directory. Not: transient errors such as EMFILE. */
const UNUSABLE = ['ENOENT', 'ENXIO', 'EISDIR', 'ELOOP', 'ENOTDIR']

const getCode = (error: unknown): unknown => (error instanceof Error && 'code' in error ? error.code : null)

/** null: missing, not a regular file, or longer than `maxBytes`. @throws other system errors */
export function readStateFile(path: string, maxBytes: number): string | null {
  let fd: number
  try {
    fd = openSync(path, O_RDONLY | O_NONBLOCK | O_NOFOLLOW)
  } catch (error) {
    if (UNUSABLE.some((code) => code === getCode(error))) return null
    throw error
  }
  try {
    const stats = fstatSync(fd)
    if (!stats.isFile() || stats.size > maxBytes) return null
    const buffer = Buffer.alloc(stats.size)
    return buffer.toString('utf8', 0, readSync(fd, buffer, 0, stats.size, 0))
  } finally {
    closeSync(fd)
  }
}

/** Opens for writing and creates the file. Does not truncate. @throws system errors */
export const openStateFile = (path: string, { append = false } = {}): number =>
  openSync(path, O_WRONLY | O_CREAT | O_NONBLOCK | O_NOFOLLOW | (append ? O_APPEND : 0), 0o600)
