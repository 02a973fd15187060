// Stores a stream as the chunks of an archive. Synchronous: used in worker threads.
import { createHash, type Hash } from 'node:crypto'
import {
  closeSync,
  fsyncSync,
  mkdirSync,
  openSync,
  readSync,
  renameSync,
  statfsSync,
  unlinkSync,
  writeFileSync,
  writeSync,
} from 'node:fs'
import { join } from 'node:path'
import { hasChunk, hashChunk, writeChunk } from './chunk-store.ts'
import { createChunker } from './chunker.ts'
import type { Manifest } from './manifest.ts'
import {
  archivePath,
  CHUNK_LIST_FILE,
  formatChunkEntry,
  MANIFEST_FILE,
  type StoreDirs,
  tempPath,
} from './store-files.ts'

export type StoreLimits = {
  /** Of the tar stream. */
  maxBytes: number
  /** The store does not use the last `reserveBytes` of the file system. */
  reserveBytes: number
}

export class StoreLimitError extends Error {
  override name = 'StoreLimitError'
}

/** How much is written between two checks of the free space. */
const SPACE_CHECK_BYTES = 32 * 1024 * 1024
const TRAILER_BYTES = 1024

export type StreamStore = ReturnType<typeof createStreamStore>

/**
 * @param deferred new chunks are written to one temporary file, without compression, until `finish`: the processes of
 * the machine are paused while the stream is read.
 */
export function createStreamStore(dirs: StoreDirs, limits: StoreLimits, deferred: boolean) {
  for (const dir of [dirs.archives, dirs.chunks, dirs.temp, dirs.removed])
    mkdirSync(dir, { recursive: true, mode: 0o700 })
  const archiveDir = tempPath(dirs)
  mkdirSync(archiveDir, { mode: 0o700 })
  let list: number | null = openSync(join(archiveDir, CHUNK_LIST_FILE), 'wx', 0o600)
  const digest: Hash = createHash('sha256')
  const deferredChunks = new Map<string, { offset: number; bytes: number }>()
  let spool: number | null = null
  let spoolBytes = 0
  let streamBytes = 0
  let storedBytes = 0
  let uncheckedBytes = SPACE_CHECK_BYTES
  let listText = ''
  let listBytes = 0
  let tail = Buffer.alloc(0)

  function checkSpace(bytes: number): void {
    uncheckedBytes += bytes
    if (uncheckedBytes < SPACE_CHECK_BYTES) return
    uncheckedBytes = 0
    const { bavail, bsize } = statfsSync(dirs.dir)
    if (bavail * bsize < limits.reserveBytes)
      throw new StoreLimitError('The disk of the archives is almost full. Free space on it, then try again.')
  }

  function store(name: string, chunk: Buffer): void {
    checkSpace(chunk.length)
    storedBytes += writeChunk(dirs, name, chunk)
  }

  function defer(name: string, chunk: Buffer): void {
    checkSpace(chunk.length)
    spool ??= openUnlinked(tempPath(dirs))
    writeFully(spool, chunk)
    deferredChunks.set(name, { offset: spoolBytes, bytes: chunk.length })
    spoolBytes += chunk.length
  }

  function flushList(): void {
    digest.update(listText)
    if (list !== null) writeFully(list, Buffer.from(listText))
    listBytes += listText.length
    listText = ''
  }

  function closeList(): void {
    if (list !== null) closeSync(list)
    list = null
  }

  function closeSpool(): void {
    if (spool !== null) closeSync(spool)
    spool = null
  }

  const chunker = createChunker((chunk) => {
    const name = hashChunk(chunk)
    listText += formatChunkEntry({ hash: name, bytes: chunk.length })
    if (listText.length > 64 * 1024) flushList()
    if (deferredChunks.has(name) || hasChunk(dirs, name)) return
    if (deferred) defer(name, chunk)
    else store(name, chunk)
  })

  return {
    push(data: Buffer): void {
      streamBytes += data.length
      if (streamBytes > limits.maxBytes)
        throw new StoreLimitError(
          'The files of the box are too large for an archive. Delete some of them, then try again.',
        )
      tail = Buffer.concat([tail, data.subarray(-TRAILER_BYTES)]).subarray(-TRAILER_BYTES)
      chunker.push(data)
    },

    /** Whether the stream ends with two blocks of zeros, as a complete tar archive does. */
    isComplete: (): boolean => tail.length === TRAILER_BYTES && tail.every((byte) => byte === 0),

    /** Ends the stream, and compresses and stores the deferred chunks. Yields after each, so that the caller can stop. */
    *finish(): Generator<void> {
      chunker.flush()
      for (const [name, { offset, bytes }] of deferredChunks) {
        const chunk = Buffer.allocUnsafe(bytes)
        if (spool === null || readSync(spool, chunk, 0, bytes, offset) !== bytes)
          throw new Error('The temporary file of the archive is incomplete.')
        store(name, chunk)
        yield
      }
      closeSpool()
    },

    /** Completes the archive. Every chunk is on disk before the manifest. */
    commit(
      archiveId: string,
      info: Pick<Manifest, 'contentBytes' | 'pausedMs'>,
      syncFileSystem: (dir: string) => void,
    ): Manifest {
      flushList()
      closeList()
      const value: Manifest = {
        version: 1,
        ...info,
        storedBytes: storedBytes + listBytes,
        streamBytes,
        digest: digest.digest('hex'),
      }
      writeFileSync(join(archiveDir, MANIFEST_FILE), `${JSON.stringify(value)}\n`, {
        flag: 'wx',
        mode: 0o600,
      })
      syncFileSystem(dirs.dir)
      renameSync(archiveDir, archivePath(dirs, archiveId))
      syncDirectory(dirs.archives)
      return value
    },

    /** Chunks that were stored, and the temporary directory that reports them, remain until the next collection. */
    close(): void {
      closeList()
      closeSpool()
    },
  }
}

/** The file disappears with its descriptor. */
function openUnlinked(path: string): number {
  const file = openSync(path, 'wx+', 0o600)
  unlinkSync(path)
  return file
}

function writeFully(file: number, data: Buffer): void {
  for (let offset = 0; offset < data.length; ) offset += writeSync(file, data, offset)
}

function syncDirectory(dir: string): void {
  const file = openSync(dir, 'r')
  try {
    fsyncSync(file)
  } finally {
    closeSync(file)
  }
}
