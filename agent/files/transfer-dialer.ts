// Dial-back connections for large bodies, as the file routes use them. Implemented in agent/tunnel.

export type TransferBody = {
  chunks: AsyncIterable<Buffer>
  /** Closes the connection in any state. */
  release(): void
}

export interface TransferDialer {
  /**
   * Connects to the coordinator and receives the body of an upload. `length` is in bytes, or null when the sender did
   * not declare it. The caller may free each chunk. Iteration throws when the body ends early, if that can be detected.
   */
  fetch(id: string, length: number | null): Promise<TransferBody>
  /**
   * Connects to the coordinator and sends the body of a download with these headers (content-type, content-length if
   * known, content-range, etag, x-service-path, x-service-content). Resolves when the whole body is written to the connection. When `body`
   * throws, the connection must be reset, never closed normally: without a content-length the coordinator could not
   * detect the truncation. The caller may reuse the memory of a chunk of 64 KiB or more once the next chunk is requested.
   */
  send(id: string, headers: Record<string, string>, body: AsyncIterable<Buffer>): Promise<void>
}
