// Writes a backup as a tar stream.
import { createHash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { stat } from 'node:fs/promises'
import { Header } from 'tar'
import { type BackupDescription, CHECKSUMS_ENTRY, DESCRIPTION_ENTRY, formatChecksum } from './format.ts'

/** A file of the backup. The file must not change any more. */
export type BackupFile = { name: string; path: string }

const BLOCK_BYTES = 512

/** The bytes of an entry with its header. */
export const getPackedBytes = (size: number): number =>
  BLOCK_BYTES + Math.ceil(size / BLOCK_BYTES) * BLOCK_BYTES

/** Streams the files. A file that changes meanwhile is an error. */
export async function* packBackup(
  description: BackupDescription,
  files: AsyncIterable<BackupFile>,
): AsyncGenerator<Buffer> {
  const mtime = new Date(description.createdAt)
  const checksums: string[] = []

  async function* packEntry(name: string, size: number, content: AsyncIterable<Buffer> | Iterable<Buffer>) {
    yield createHeader(name, size, mtime)
    const hash = createHash('sha256')
    let count = 0
    for await (const block of content) {
      hash.update(block)
      count += block.length
      if (count > size) break
      yield block
    }
    if (count !== size) throw new Error(`The size of ${name} has changed while it was read. Try again.`)
    yield Buffer.alloc((BLOCK_BYTES - (size % BLOCK_BYTES)) % BLOCK_BYTES)
    checksums.push(formatChecksum(name, hash.digest('hex')))
  }

  const packText = (name: string, text: string) => {
    const content = Buffer.from(text)
    return packEntry(name, content.length, [content])
  }

  yield* packText(DESCRIPTION_ENTRY, `${JSON.stringify(description, null, 2)}\n`)
  for await (const { name, path } of files) {
    const { size } = await stat(path)
    yield* packEntry(name, size, createReadStream(path, { highWaterMark: 1024 * 1024 }))
  }
  yield* packText(CHECKSUMS_ENTRY, checksums.join(''))
  yield Buffer.alloc(2 * BLOCK_BYTES)
}

function createHeader(path: string, size: number, mtime: Date): Buffer {
  const header = new Header({ path, size, mtime, mode: 0o600, uid: 0, gid: 0, type: 'File' })
  if (header.encode() || header.block === undefined) throw new Error(`The path ${path} is too long.`)
  return header.block
}
