// Reads files that a box may be able to change: a limited number of bytes, and only of regular files.
import { closeSync, constants, fstatSync, openSync, readSync } from 'node:fs'

const { O_RDONLY, O_NOFOLLOW, O_NONBLOCK } = constants
const CHUNK_BYTES = 8 * 1024

export class NotRegularFileError extends Error {
  override name = 'NotRegularFileError'
  constructor(path: string) {
    super(`${path} is not a regular file`)
  }
}

/** Returns up to `maxBytes` from the start of the file. */
export const readStart = (path: string, maxBytes: number): Buffer => readFrom(path, maxBytes, () => 0)

/** Returns up to `maxBytes` from the end of the file, and nothing before the offset `start`. */
export const readEnd = (path: string, maxBytes: number, start: number): Buffer =>
  readFrom(path, maxBytes, (size) => Math.max(start, size - maxBytes))

function readFrom(path: string, maxBytes: number, getStart: (size: number) => number): Buffer {
  const file = openRegularFile(path)
  try {
    const start = getStart(fstatSync(file).size)
    const chunks: Buffer[] = []
    for (let length = 0; length < maxBytes; ) {
      const chunk = Buffer.allocUnsafe(Math.min(CHUNK_BYTES, maxBytes - length))
      const count = readSync(file, chunk, 0, chunk.length, start + length)
      if (count === 0) break
      chunks.push(chunk.subarray(0, count))
      length += count
    }
    return Buffer.concat(chunks)
  } finally {
    closeSync(file)
  }
}

function openRegularFile(path: string): number {
  let file: number
  try {
    // Without O_NONBLOCK the open of a FIFO blocks this process.
    file = openSync(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK)
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    // The path is a symlink or a socket.
    if (code === 'ELOOP' || code === 'ENXIO') throw new NotRegularFileError(path)
    throw error
  }
  if (fstatSync(file).isFile()) return file
  closeSync(file)
  throw new NotRegularFileError(path)
}
