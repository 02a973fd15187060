// What the file routes need from the tunnel: connections of their own for large bodies, dialed out to the coordinator.

export type FetchedBody = {
  chunks: AsyncIterable<Buffer>
  /** Lets go of the connection, in whatever state it is. */
  drop(): void
}

export interface TransferDialer {
  /**
   * Dials out for the body of an upload of this many bytes, null where its sender did not say. A chunk of it is out of
   * use once the next one is asked for. The body throws when it ends early, as far as that can be told.
   */
  fetch(id: string, length: number | null): Promise<FetchedBody>
  /**
   * Dials out and sends the body of a download under these headers (content-type, content-length where it is known,
   * x-service-path, x-service-content). Resolves when all of it was handed over. When `body` errors the connection must
   * break, never end: without a content-length the coordinator could not tell. A chunk of 64 KiB or more is out of use
   * once the next one is asked for, so that its maker may fill it again.
   */
  bring(id: string, headers: Record<string, string>, body: AsyncIterable<Buffer>): Promise<void>
}
