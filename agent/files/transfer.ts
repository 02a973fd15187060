// What the file routes need from the tunnel: connections of their own for large bodies, dialed out to the coordinator.
import type { Readable } from 'node:stream'

export interface TransferDialer {
  /**
   * Dials out for the body of an upload. `length` is what its sender declared, in bytes, null if it did not. The
   * chunks of `body` are buffers that are not written to again; a body that ends early must error.
   */
  fetch(id: string): Promise<{ body: Readable; length: number | null }>
  /**
   * Dials out and sends the body of a download under these headers (content-type, content-length where it is known,
   * x-service-path, x-service-content). Resolves when all of it was handed over. When `body` errors the connection must
   * break, never end: without a content-length the coordinator could not tell. A chunk of 64 KiB or more is out of use
   * once the next one is asked for, so that its maker may fill it again.
   */
  bring(id: string, headers: Record<string, string>, body: AsyncIterable<Buffer>): Promise<void>
}
