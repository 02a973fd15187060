// Frees the memory of buffers immediately instead of at the next garbage collection.

/** Freeing smaller buffers saves too little memory. */
const MIN_BYTES = 16 * 1024

/** Detaches the buffer, whose length becomes 0. Views of a larger buffer are left unchanged. */
export function freeBuffer({ buffer, byteLength }: Uint8Array): void {
  const isWholeBuffer = byteLength === buffer.byteLength
  if (isWholeBuffer && byteLength >= MIN_BYTES && buffer instanceof ArrayBuffer) buffer.transfer(0)
}
