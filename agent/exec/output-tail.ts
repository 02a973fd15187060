// Ring buffer with the last bytes of a stream.
import { isContinuationByte, sequenceLength } from '../../shared/utf8.ts'

export type OutputTail = {
  /** Copies the chunk. */
  push(chunk: Uint8Array): void
  /** True when bytes before the tail were discarded. */
  truncated(): boolean
  /** The tail as UTF-8. A character that the cut splits is left out; invalid bytes become U+FFFD. */
  text(): string
  /** The tail as bytes. */
  bytes(): Buffer
  /** Number of bytes pushed in all. */
  total(): number
}

const INITIAL_BYTES = 4096
/**
 * Bytes retained before the tail: the length of the longest incomplete UTF-8 prefix. These bytes distinguish a split
 * character from an invalid one.
 */
export const LOOKBEHIND = 3

/** @param limit size of the tail in bytes. Memory grows with the output, up to the limit. */
export function createOutputTail(limit: number): OutputTail {
  const maxBytes = limit + LOOKBEHIND
  let ring = Buffer.alloc(0)
  let total = 0

  const grow = (needed: number) => {
    const larger = Buffer.allocUnsafe(Math.min(maxBytes, Math.max(needed, ring.length * 2, INITIAL_BYTES)))
    ring.copy(larger, 0, 0, total)
    ring = larger
  }

  /** The buffered bytes in order: up to LOOKBEHIND bytes, then the tail. */
  const buffered = () => (total <= ring.length ? ring.subarray(0, total) : unroll(ring, total % ring.length))

  return {
    push(chunk) {
      const newTotal = total + chunk.length
      // Below the maximum the ring has not wrapped yet, so it can be copied linearly.
      if (ring.length < maxBytes && newTotal > ring.length) grow(newTotal)
      const tail = chunk.length > ring.length ? chunk.subarray(chunk.length - ring.length) : chunk
      const at = (newTotal - tail.length) % ring.length
      const head = tail.subarray(0, ring.length - at)
      ring.set(head, at)
      ring.set(tail.subarray(head.length), 0)
      total = newTotal
    },
    truncated: () => total > limit,
    text() {
      if (total <= ring.length && total <= limit) return ring.toString('utf8', 0, total)
      const bytes = buffered()
      const cut = bytes.length - limit
      return bytes.toString('utf8', cut + splitCharacterBytes(bytes, cut))
    },
    bytes: () => buffered().subarray(-limit),
    total: () => total,
  }
}

const unroll = (ring: Buffer, start: number) => Buffer.concat([ring.subarray(start), ring.subarray(0, start)])

/** Number of bytes after the cut that belong to a character that starts before the cut. */
function splitCharacterBytes(bytes: Buffer, cut: number): number {
  for (let lead = cut - 1; lead >= 0; lead--) {
    const byte = bytes[lead]
    if (isContinuationByte(byte)) continue
    const rest = lead + sequenceLength(byte ?? 0) - cut
    if (rest <= 0) return 0
    for (let i = cut; i < cut + rest; i++) if (!isContinuationByte(bytes[i])) return 0
    return rest
  }
  return 0
}
