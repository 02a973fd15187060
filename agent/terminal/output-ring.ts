// Ring buffer with the last bytes of a terminal's output, addressed by offset.

export type OutputRing = {
  /** Copies the bytes. */
  push(bytes: Uint8Array): void
  /** Offset of the first retained byte. */
  start(): number
  /** Offset after the last byte. */
  end(): number
  /** Copies at most `limit` bytes from `offset`, which is between start() and end(). */
  read(offset: number, limit: number): Buffer
}

const INITIAL_BYTES = 4096

/**
 * @param maxBytes a power of two times INITIAL_BYTES. Memory grows with the output, up to this size.
 * @param firstOffset offset of the first byte that will be pushed
 */
export function createOutputRing(maxBytes: number, firstOffset = 0): OutputRing {
  let ring = Buffer.alloc(0)
  /** Number of bytes pushed. */
  let end = 0
  const start = () => Math.max(0, end - ring.length)

  /** A byte is at its number modulo the size. Before the maximum size, nothing has been discarded. */
  function grow(neededBytes: number): void {
    let size = Math.max(ring.length, INITIAL_BYTES)
    while (size < neededBytes && size < maxBytes) size *= 2
    const larger = Buffer.allocUnsafeSlow(size)
    ring.copy(larger, 0, 0, end)
    ring = larger
  }

  return {
    push(bytes) {
      if (ring.length < maxBytes && end + bytes.length > ring.length) grow(end + bytes.length)
      const kept = bytes.subarray(Math.max(0, bytes.length - ring.length))
      end += bytes.length
      const at = (end - kept.length) % ring.length
      const head = kept.subarray(0, ring.length - at)
      ring.set(head, at)
      ring.set(kept.subarray(head.length), 0)
    },
    start: () => firstOffset + start(),
    end: () => firstOffset + end,
    read(offset, limit) {
      const first = offset - firstOffset
      const length = Math.min(limit, end - first)
      if (first < start() || length <= 0) return Buffer.alloc(0)
      const at = first % ring.length
      const head = ring.subarray(at, Math.min(at + length, ring.length))
      return Buffer.concat([head, ring.subarray(0, length - head.length)], length)
    },
  }
}
