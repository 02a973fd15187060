// Frees the memory of buffers immediately instead of at the next garbage collection.

/** Smaller buffers may share their memory with others, and cost little. */
const MIN_BYTES = 16 * 1024

/** Detaches the buffer, whose length becomes 0. Views of a larger buffer are left unchanged. */
export function freeBytes({ buffer, byteLength }: Uint8Array): void {
  const ownsBuffer = byteLength === buffer.byteLength && byteLength >= MIN_BYTES
  if (ownsBuffer && buffer instanceof ArrayBuffer) buffer.transfer(0)
}
