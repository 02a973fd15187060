// Rotates coordinator.log by size. `box up` opens this file and passes it as stdout and stderr, so that it also has the errors
// of a start and crashes of Node. This process cannot replace the open file: it copies the content and truncates the file.
import { constants, copyFileSync, fstatSync, ftruncateSync, renameSync, rmSync, statSync } from 'node:fs'
import { readDescriptorFlags } from '../descriptor-flags.ts'

const MiB = 1024 * 1024

export type RotationOptions = {
  /** The open log. */
  fd: number
  /** The earlier files are beside it: `path.1` is the newest. */
  path: string
  /** Default: 10 MiB, and 4 earlier files. */
  maxBytes?: number
  earlierFiles?: number
}

/**
 * Call the returned function before each line. It does nothing unless `fd` is the file at `path`, opened for appending: an
 * operator may have redirected the log to a file of their own, or moved it.
 */
export function createLogRotation(options: RotationOptions): () => void {
  const { fd, path, maxBytes = 10 * MiB, earlierFiles = 4 } = options
  if (!isLog(fd, path)) return () => undefined
  let limit = maxBytes

  function rotate(): void {
    const copy = `${path}.new`
    try {
      copyFileSync(path, copy)
    } catch (error) {
      rmSync(copy, { force: true })
      throw error
    }
    for (let i = earlierFiles - 1; i >= 1; i -= 1) renameIfExists(`${path}.${i}`, `${path}.${i + 1}`)
    renameSync(copy, `${path}.1`)
    ftruncateSync(fd, 0)
  }

  return () => {
    const { size } = fstatSync(fd)
    if (size < limit) return
    try {
      if (!isLog(fd, path)) throw new Error('The log is not at its path.')
      rotate()
      limit = maxBytes
    } catch {
      // The disk may be full, or an operator may have moved the file. The log continues to grow until a later attempt.
      limit = size + maxBytes / 10
    }
  }
}

function isLog(fd: number, path: string): boolean {
  const open = fstatSync(fd)
  const file = statSync(path, { throwIfNoEntry: false })
  return open.isFile() && open.dev === file?.dev && open.ino === file.ino && isAppending(fd)
}

/** Bytes that are written after the truncation would otherwise be at their old position in the file. */
function isAppending(fd: number): boolean {
  return ((readDescriptorFlags(fd) ?? 0) & constants.O_APPEND) !== 0
}

function renameIfExists(from: string, to: string): void {
  try {
    renameSync(from, to)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
  }
}
