// Stops a write before the file system is full. Synchronous: used in worker threads.
import { statfsSync } from 'node:fs'
import { StoreLimitError } from './store-limits.ts'

/** How much is written between two checks of the free space. */
const SPACE_CHECK_BYTES = 32 * 1024 * 1024
/** A write of tar has at most this length. */
const FULL_BYTES = 1024 * 1024

export class SpaceCheck {
  readonly #dir: string
  readonly #reserveBytes: number
  readonly #message: string
  #uncheckedBytes = SPACE_CHECK_BYTES

  /** @param reserveBytes the free space that is not used @param message of the StoreLimitError */
  constructor(dir: string, reserveBytes: number, message: string) {
    this.#dir = dir
    this.#reserveBytes = reserveBytes
    this.#message = message
  }

  /** Call it before the bytes are written. Throws StoreLimitError. */
  add(bytes: number): void {
    this.#uncheckedBytes += bytes
    if (this.#uncheckedBytes < SPACE_CHECK_BYTES) return
    this.#uncheckedBytes = 0
    const { bavail, bsize } = statfsSync(this.#dir)
    if (bavail * bsize < this.#reserveBytes) throw new StoreLimitError(this.#message)
  }

  /** Call it after a failed write, which does not always name its reason. Throws StoreLimitError when the disk is full. */
  checkFailure(): void {
    const { bavail, bsize, files, ffree } = statfsSync(this.#dir)
    if (bavail * bsize < FULL_BYTES || (files > 0 && ffree === 0)) throw new StoreLimitError(this.#message)
  }
}
