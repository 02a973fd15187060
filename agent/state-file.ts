// Reads and writes small files of the state directory without waiting. The user of the box, and so each command, can
// replace them by anything, such as a FIFO, a directory or a huge file.
import { closeSync, constants, fstatSync, ftruncateSync, openSync, readSync, writeSync } from 'node:fs'

const { O_NONBLOCK, O_NOFOLLOW, O_RDONLY, O_WRONLY, O_CREAT, O_APPEND } = constants
/** FIFO without a reader, directory, symbolic link, missing directory. Not: transient errors such as EMFILE. */
const UNUSABLE = ['ENOENT', 'ENXIO', 'EISDIR', 'ELOOP', 'ENOTDIR']

const getCode = (error: unknown): unknown => (error instanceof Error && 'code' in error ? error.code : null)

/** Calls `read` with the open file. null: missing, or not a regular file. @throws other system errors */
export function withStateFile<T>(path: string, read: (fd: number, size: number) => T): T | null {
  let fd: number
  try {
    fd = openSync(path, O_RDONLY | O_NONBLOCK | O_NOFOLLOW)
  } catch (error) {
    if (UNUSABLE.some((code) => code === getCode(error))) return null
    throw error
  }
  try {
    const stats = fstatSync(fd)
    return stats.isFile() ? read(fd, stats.size) : null
  } finally {
    closeSync(fd)
  }
}

/** null: missing, not a regular file, or longer than `maxBytes`. @throws other system errors */
export const readStateFile = (path: string, maxBytes: number): string | null =>
  withStateFile(path, (fd, size) => {
    if (size > maxBytes) return null
    const buffer = Buffer.alloc(size)
    return buffer.toString('utf8', 0, readSync(fd, buffer, 0, size, 0))
  })

/** Opens for writing and creates the file. Does not truncate. @throws system errors */
export const openStateFile = (path: string, { append = false } = {}): number =>
  openSync(path, O_WRONLY | O_CREAT | O_NONBLOCK | O_NOFOLLOW | (append ? O_APPEND : 0), 0o600)

/**
 * Writes a file, but not atomically: the existence of the file is the message, or no part of it is read before it is complete.
 * @throws system errors
 */
export function writeStateFile(path: string, content: string): void {
  const fd = openStateFile(path)
  try {
    ftruncateSync(fd)
    writeSync(fd, content)
  } finally {
    closeSync(fd)
  }
}
