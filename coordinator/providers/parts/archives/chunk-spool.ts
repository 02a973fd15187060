// A temporary file with new chunks, not compressed, until they are stored. Synchronous: used in worker threads.
import { closeSync, openSync, readSync, unlinkSync, writeFileSync } from 'node:fs'

export class ChunkSpool {
  readonly #path: string
  readonly #chunks = new Map<string, { offset: number; bytes: number }>()
  #file: number | null = null
  #length = 0

  /** The first chunk creates the file. */
  constructor(path: string) {
    this.#path = path
  }

  has(name: string): boolean {
    return this.#chunks.has(name)
  }

  add(name: string, chunk: Buffer): void {
    this.#file ??= openUnlinked(this.#path)
    writeFileSync(this.#file, chunk)
    this.#chunks.set(name, { offset: this.#length, bytes: chunk.length })
    this.#length += chunk.length
  }

  *read(): Generator<[name: string, chunk: Buffer]> {
    for (const [name, { offset, bytes }] of this.#chunks) {
      const chunk = Buffer.allocUnsafe(bytes)
      if (this.#file === null || readSync(this.#file, chunk, 0, bytes, offset) !== bytes)
        throw new Error('The temporary file of the archive is incomplete.')
      yield [name, chunk]
    }
  }

  /** Idempotent. */
  close(): void {
    if (this.#file !== null) closeSync(this.#file)
    this.#file = null
  }
}

/** The file disappears with its descriptor. */
function openUnlinked(path: string): number {
  const file = openSync(path, 'wx+', 0o600)
  unlinkSync(path)
  return file
}
