// The files of a workspace's store, and the list of chunks of an archive. Synchronous: used in worker threads.
import { createHash, randomBytes } from 'node:crypto'
import { closeSync, openSync, readSync } from 'node:fs'
import { join } from 'node:path'

export type StoreDirs = ReturnType<typeof storeDirs>

/** @param dir the directory of a workspace */
export const storeDirs = (dir: string) => ({
  dir,
  /** A directory per archive, with MANIFEST_FILE and CHUNK_LIST_FILE. */
  archives: join(dir, 'archives'),
  chunks: join(dir, 'chunks'),
  /** Archives whose chunks are not removed yet. */
  removed: join(dir, 'removed'),
  /** Incomplete files. */
  temp: join(dir, 'tmp'),
})

export const chunkPath = ({ chunks }: StoreDirs, hash: string): string => join(chunks, hash.slice(0, 2), hash)
export const archivePath = ({ archives }: StoreDirs, archiveId: string): string => join(archives, archiveId)
export const tempPath = ({ temp }: StoreDirs): string => join(temp, randomBytes(8).toString('hex'))

export const MANIFEST_FILE = 'manifest.json'
export const CHUNK_LIST_FILE = 'chunks'

export class DamagedArchiveError extends Error {
  override name = 'DamagedArchiveError'
}

/** Throws DamagedArchiveError when the list of chunks is not the list of the manifest. */
export function verifyChunkList(dir: string, { digest }: { digest: string }): void {
  const hash = createHash('sha256')
  try {
    for (const block of readBlocks(join(dir, CHUNK_LIST_FILE))) hash.update(block)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
  }
  if (hash.digest('hex') !== digest) throw new DamagedArchiveError('its list of chunks is damaged')
}

export type ChunkEntry = { hash: string; bytes: number }

/** Entries have a fixed length, so that a list of any length is read with little memory. */
const ENTRY_PATTERN = /^([0-9a-f]{64}) ( *[0-9]+)\n$/
const ENTRY_BYTES = 64 + 1 + 8 + 1

export const formatChunkEntry = ({ hash, bytes }: ChunkEntry): string =>
  `${hash} ${String(bytes).padStart(8)}\n`

export function* readChunkList(path: string): Generator<ChunkEntry> {
  for (const block of readBlocks(path)) {
    for (let offset = 0; offset < block.length; offset += ENTRY_BYTES) {
      const match = ENTRY_PATTERN.exec(block.toString('latin1', offset, offset + ENTRY_BYTES))
      if (match?.[1] === undefined) throw new DamagedArchiveError('its list of chunks is damaged')
      yield { hash: match[1], bytes: Number(match[2]) }
    }
  }
}

function* readBlocks(path: string): Generator<Buffer> {
  const file = openSync(path, 'r')
  try {
    for (;;) {
      const block = Buffer.allocUnsafe(1024 * ENTRY_BYTES)
      const count = readSync(file, block)
      if (count === 0) return
      yield block.subarray(0, count)
    }
  } finally {
    closeSync(file)
  }
}
