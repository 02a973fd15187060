// Stores a stream as the chunks of an archive. Synchronous: used in worker threads.
import { closeSync, fsyncSync, mkdirSync, openSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { ChunkListWriter } from './chunk-list-writer.ts'
import { ChunkSpool } from './chunk-spool.ts'
import { hasChunk, hashChunk, writeChunk } from './chunk-store.ts'
import { createChunker } from './chunker.ts'
import type { Manifest } from './manifest.ts'
import { SpaceCheck } from './space-check.ts'
import { archivePath, CHUNK_LIST_FILE, MANIFEST_FILE, type StoreDirs, tempPath } from './store-files.ts'
import { StoreLimitError, type StoreLimits } from './store-limits.ts'

const TRAILER_BYTES = 1024

export class StreamStore {
  readonly #dirs: StoreDirs
  readonly #limits: StoreLimits
  readonly #archiveDir: string
  readonly #list: ChunkListWriter
  /** null: new chunks are compressed and stored at once. */
  readonly #spool: ChunkSpool | null
  readonly #chunker = createChunker((chunk) => this.#addChunk(chunk))
  #streamBytes = 0
  #storedBytes = 0
  readonly #space: SpaceCheck
  #tail = Buffer.alloc(0)

  /**
   * @param isDeferred new chunks are written to one temporary file, without compression, until `finish`: the processes of
   * the machine are paused while the stream is read.
   */
  constructor(dirs: StoreDirs, limits: StoreLimits, isDeferred: boolean) {
    this.#dirs = dirs
    this.#limits = limits
    this.#space = new SpaceCheck(
      dirs.dir,
      limits.reserveBytes,
      'The disk of the archives is almost full. Free space on it, then try again.',
    )
    for (const dir of [dirs.archives, dirs.chunks, dirs.temp, dirs.removed])
      mkdirSync(dir, { recursive: true, mode: 0o700 })
    this.#archiveDir = tempPath(dirs)
    mkdirSync(this.#archiveDir, { mode: 0o700 })
    this.#list = new ChunkListWriter(join(this.#archiveDir, CHUNK_LIST_FILE))
    this.#spool = isDeferred ? new ChunkSpool(tempPath(dirs)) : null
  }

  push(data: Buffer): void {
    this.#streamBytes += data.length
    if (this.#streamBytes > this.#limits.maxBytes)
      throw new StoreLimitError(
        'The files of the box are too large for an archive. Delete some of them, then try again.',
      )
    this.#tail = Buffer.concat([this.#tail, data.subarray(-TRAILER_BYTES)]).subarray(-TRAILER_BYTES)
    this.#chunker.push(data)
  }

  /** Whether the stream ends with two blocks of zeros, as a complete tar archive does. */
  isComplete(): boolean {
    return this.#tail.length === TRAILER_BYTES && this.#tail.every((byte) => byte === 0)
  }

  /** Ends the stream, and compresses and stores the deferred chunks. Yields after each, so that the caller can stop. */
  *finish(): Generator<void> {
    this.#chunker.flush()
    for (const [name, chunk] of this.#spool?.read() ?? []) {
      this.#store(name, chunk)
      yield
    }
    this.#spool?.close()
  }

  /** Completes the archive. Every chunk is on disk before the manifest. */
  commit(
    archiveId: string,
    info: Pick<Manifest, 'contentBytes' | 'pausedMs'>,
    syncFileSystem: (dir: string) => void,
  ): Manifest {
    const list = this.#list.finish()
    const manifest: Manifest = {
      version: 1,
      ...info,
      storedBytes: this.#storedBytes + list.bytes,
      streamBytes: this.#streamBytes,
      digest: list.digest,
    }
    writeFileSync(join(this.#archiveDir, MANIFEST_FILE), `${JSON.stringify(manifest)}\n`, {
      flag: 'wx',
      mode: 0o600,
    })
    syncFileSystem(this.#dirs.dir)
    renameSync(this.#archiveDir, archivePath(this.#dirs, archiveId))
    syncDirectory(this.#dirs.archives)
    return manifest
  }

  /** Chunks that were stored, and the temporary directory that reports them, remain until the next collection. */
  close(): void {
    this.#list.close()
    this.#spool?.close()
  }

  #addChunk(chunk: Buffer): void {
    const name = hashChunk(chunk)
    this.#list.add({ hash: name, bytes: chunk.length })
    if (this.#spool?.has(name) || hasChunk(this.#dirs, name)) return
    if (this.#spool === null) this.#store(name, chunk)
    else {
      this.#space.add(chunk.length)
      this.#spool.add(name, chunk)
    }
  }

  #store(name: string, chunk: Buffer): void {
    this.#space.add(chunk.length)
    this.#storedBytes += writeChunk(this.#dirs, name, chunk)
  }
}

function syncDirectory(dir: string): void {
  const file = openSync(dir, 'r')
  try {
    fsyncSync(file)
  } finally {
    closeSync(file)
  }
}
