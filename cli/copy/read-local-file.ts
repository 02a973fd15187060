// Reads files of this machine. The size in their stats is only a hint: files in /proc report 0, and those in /sys a page.
import {
  closeSync,
  constants,
  fstatSync,
  openSync,
  readSync,
  type Stats,
  unlinkSync,
  writeSync,
} from 'node:fs'
import { open } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setImmediate } from 'node:timers/promises'
import { boxCommand } from '../command-name.ts'
import { CliError, EXIT } from '../output/exit-codes.ts'
import { sanitize } from '../output/print.ts'
import { createTempName } from './local-files.ts'
import { decodePath, toFsPath } from './path-bytes.ts'

export const CHUNK_BYTES = 256 * 1024
/** Files up to this size are read to their end before their size is sent. */
export const SMALL_FILE_BYTES = 128 * 1024
/** The memory for the content of one file. */
const MAX_CONTENT_BYTES = 1024 * 1024

const { O_RDONLY, O_NOFOLLOW, O_NONBLOCK } = constants

/** The content of a small file; null for a large one. Follows symbolic links. */
export async function readSmallFile(path: string, size: number): Promise<Buffer | null> {
  if (size > SMALL_FILE_BYTES) return null
  const fd = openSync(toFsPath(path), O_RDONLY | O_NONBLOCK)
  try {
    return readToEnd(fd)
  } finally {
    closeSync(fd)
  }
}

/** Yields the first `size` bytes: what is appended meanwhile is ignored. @throws CliError for a file that is shorter */
export async function* readExactly(path: string, size: number): AsyncGenerator<Uint8Array, void, undefined> {
  const file = await open(toFsPath(path))
  try {
    let bytesRead = 0
    const stream = file.createReadStream({ end: size - 1, highWaterMark: 2 * CHUNK_BYTES, autoClose: false })
    for await (const chunk of stream) {
      bytesRead += chunk.length
      yield chunk
    }
    if (bytesRead < size) throw createShorterError(path)
    assertEnd(file.fd, path, size)
  } finally {
    await file.close()
  }
}

/** `size` is that of the content. @throws CliError for a file that becomes shorter while it is read */
export type OpenFile = {
  stats: Stats
  size: number
  chunks(): Generator<Buffer, void, undefined>
  close(): void
}

/** Opens a file whose size must be known before its content. Does not follow a symbolic link. */
export async function openSizedFile(path: Buffer): Promise<OpenFile> {
  const fd = openSync(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK)
  const close = () => closeSync(fd)
  try {
    const stats = fstatSync(fd)
    const { size } = stats
    if (size > SMALL_FILE_BYTES) return { stats, size, chunks: () => readSized(fd, path, size), close }
    const content = readToEnd(fd)
    if (content === null) return await spool(fd, stats)
    return { stats, size: content.length, chunks: () => yieldContent(content), close }
  } catch (error) {
    close()
    throw error
  }
}

function* yieldContent(content: Buffer): Generator<Buffer, void, undefined> {
  if (content.length > 0) yield content
}

/** Copies a large file whose size is wrong to a temporary file. Closes `fd`. */
async function spool(fd: number, stats: Stats): Promise<OpenFile> {
  const tempPath = join(tmpdir(), createTempName())
  const spoolFd = openSync(tempPath, 'wx+', 0o600)
  try {
    unlinkSync(tempPath)
    const chunk = Buffer.allocUnsafe(CHUNK_BYTES)
    let size = 0
    // A file that grows is copied up to the size that it has now.
    const { size: currentSize } = fstatSync(fd)
    const limit = currentSize > MAX_CONTENT_BYTES ? currentSize : Number.POSITIVE_INFINITY
    while (size < limit) {
      const bytesRead = readSync(fd, chunk, 0, Math.min(chunk.length, limit - size), size)
      if (bytesRead === 0) break
      for (let written = 0; written < bytesRead; )
        written += writeSync(spoolFd, chunk, written, bytesRead - written)
      size += bytesRead
      // For signals.
      await setImmediate()
    }
    closeSync(fd)
    return {
      stats,
      size,
      chunks: () => readSized(spoolFd, Buffer.from(tempPath), size),
      close: () => closeSync(spoolFd),
    }
  } catch (error) {
    closeSync(spoolFd)
    throw error
  }
}

function* readSized(fd: number, path: Buffer, size: number): Generator<Buffer, void, undefined> {
  for (let position = 0; position < size; ) {
    const chunk = Buffer.allocUnsafe(Math.min(CHUNK_BYTES, size - position))
    let filled = 0
    while (filled < chunk.length) {
      const bytesRead = readSync(fd, chunk, filled, chunk.length - filled, position + filled)
      if (bytesRead === 0) throw createShorterError(decodePath(path))
      filled += bytesRead
    }
    position += chunk.length
    yield chunk
  }
  assertEnd(fd, decodePath(path), size)
}

/** Null for more than MAX_CONTENT_BYTES. */
function readToEnd(fd: number): Buffer | null {
  let buffer = Buffer.allocUnsafe(Math.min(fstatSync(fd).size, MAX_CONTENT_BYTES) + 4096)
  for (let length = 0; ; ) {
    if (length > MAX_CONTENT_BYTES) return null
    if (length === buffer.length) buffer = Buffer.concat([buffer], 4 * length)
    const bytesRead = readSync(fd, buffer, length, buffer.length - length, length)
    if (bytesRead === 0) return buffer.subarray(0, length)
    length += bytesRead
  }
}

const createShorterError = (path: string): CliError =>
  new CliError(EXIT.failed, `${sanitize(path)} became shorter during the copy. Copy it again.`)

/** A file that is longer than its size has not grown: its size is wrong, and the rest would be missing. */
function assertEnd(fd: number, path: string, size: number): void {
  if (readSync(fd, Buffer.alloc(1), 0, 1, size) === 0 || fstatSync(fd).size !== size) return
  throw new CliError(
    EXIT.failed,
    `${sanitize(path)} is longer than its size. Copy it from stdin: ${boxCommand()} cp - … < ${sanitize(path)}`,
  )
}
