// Memory of bytes that are of no use any more, given back at once instead of when the garbage collector runs.

/** Smaller ones may share their memory with others, and cost little. */
const LEAST_BYTES = 16 * 1024

/** For bytes that nobody looks at again: they are gone. Those that are a part of something larger stay. */
export function freeBytes({ buffer, byteLength }: Uint8Array): void {
  const alone = byteLength === buffer.byteLength && byteLength >= LEAST_BYTES
  if (alone && buffer instanceof ArrayBuffer) buffer.transfer(0)
}
