// Reads and writes chunks: compressed files that are named by the SHA-256 of their content. Synchronous: used in worker threads.
import { hash } from 'node:crypto'
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { constants, zstdCompressSync, zstdDecompressSync } from 'node:zlib'
import { type ChunkEntry, chunkPath, DamagedArchiveError, type StoreDirs, tempPath } from './store-files.ts'

/** Level 3 takes 45 % more time for 9 % less space. */
const ZSTD_PARAMS = { [constants.ZSTD_c_compressionLevel]: 1 }
/** zlib fills output buffers of this size. The output of a chunk is one buffer: several take up to twice the time. */
const outputSize = (bytes: number) => bytes + 4096

export const hashChunk = (chunk: Buffer): string => hash('sha256', chunk, 'hex')

export const hasChunk = (dirs: StoreDirs, name: string): boolean => existsSync(chunkPath(dirs, name))

/** Returns the size of the file. */
export function writeChunk(dirs: StoreDirs, name: string, chunk: Buffer): number {
  const path = chunkPath(dirs, name)
  const incomplete = tempPath(dirs)
  const compressed = zstdCompressSync(chunk, { params: ZSTD_PARAMS, chunkSize: outputSize(chunk.length) })
  try {
    writeFileSync(incomplete, compressed, { flag: 'wx', mode: 0o600 })
    mkdirSync(dirname(path), { recursive: true, mode: 0o700 })
    renameSync(incomplete, path)
  } catch (error) {
    rmSync(incomplete, { force: true })
    throw error
  }
  return compressed.length
}

/** Throws DamagedArchiveError when the chunk is missing or damaged. */
export function readChunk(dirs: StoreDirs, { hash: name, bytes }: ChunkEntry): Buffer {
  const compressed = readFile(chunkPath(dirs, name))
  if (compressed === null) throw new DamagedArchiveError(`the chunk ${name} is missing`)
  const chunk = decompress(compressed, bytes)
  if (chunk === null || hashChunk(chunk) !== name)
    throw new DamagedArchiveError(`the chunk ${name} is damaged`)
  return chunk
}

function readFile(path: string): Buffer | null {
  try {
    return readFileSync(path)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null
    throw error
  }
}

function decompress(compressed: Buffer, maxOutputLength: number): Buffer | null {
  try {
    return zstdDecompressSync(compressed, { maxOutputLength, chunkSize: outputSize(maxOutputLength) })
  } catch {
    return null
  }
}
