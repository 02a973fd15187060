// Writes the list of chunks of an archive. Synchronous: used in worker threads.
import { createHash } from 'node:crypto'
import { closeSync, openSync, writeFileSync } from 'node:fs'
import { type ChunkEntry, formatChunkEntry } from './store-files.ts'

const BUFFER_CHARS = 64 * 1024

export class ChunkListWriter {
  readonly #hash = createHash('sha256')
  #file: number | null
  #buffer = ''
  #bytes = 0

  constructor(path: string) {
    this.#file = openSync(path, 'wx', 0o600)
  }

  add(entry: ChunkEntry): void {
    this.#buffer += formatChunkEntry(entry)
    if (this.#buffer.length > BUFFER_CHARS) this.#flush()
  }

  /** Completes the file. Returns its length and its SHA-256 digest in hex. */
  finish(): { bytes: number; digest: string } {
    this.#flush()
    this.close()
    return { bytes: this.#bytes, digest: this.#hash.digest('hex') }
  }

  /** Idempotent. Without finish() the file is incomplete. */
  close(): void {
    if (this.#file !== null) closeSync(this.#file)
    this.#file = null
  }

  #flush(): void {
    this.#hash.update(this.#buffer)
    if (this.#file !== null) writeFileSync(this.#file, this.#buffer)
    this.#bytes += this.#buffer.length
    this.#buffer = ''
  }
}
