// Keeps the last bytes of a stream that may be endless.
import { characterLength, isContinuation } from '../../shared/utf8.ts'

export type OutputTail = {
  /** Copies: the chunk may be used again afterwards. */
  push(chunk: Uint8Array): void
  /** True when there was more than is kept. */
  truncated(): boolean
  /** What is kept, as UTF-8. A character that the cut halved is left out; bytes that never were valid become U+FFFD. */
  text(): string
  /** What is kept, as it came. */
  bytes(): Buffer
  /** How many bytes were pushed in all. */
  total(): number
}

const SMALLEST = 4096
/** The longest part of a UTF-8 character that can stand before the cut: kept to tell a halved one from a bad one. */
export const LOOKBEHIND = 3

/** @param limit bytes kept; memory grows with what is pushed, to the limit and no further */
export function createOutputTail(limit: number): OutputTail {
  const most = limit + LOOKBEHIND
  let ring = Buffer.alloc(0)
  let total = 0

  const grow = (needed: number) => {
    const larger = Buffer.allocUnsafe(Math.min(most, Math.max(needed, ring.length * 2, SMALLEST)))
    ring.copy(larger, 0, 0, total)
    ring = larger
  }

  /** Everything that is there in its order: what is kept, and before it what tells a halved character. */
  const held = () => (total <= ring.length ? ring.subarray(0, total) : unroll(ring, total % ring.length))

  return {
    push(chunk) {
      const end = total + chunk.length
      // Below the limit nothing has wrapped yet, so the ring can still be copied as it is.
      if (ring.length < most && end > ring.length) grow(end)
      const kept = chunk.length > ring.length ? chunk.subarray(chunk.length - ring.length) : chunk
      const at = (end - kept.length) % ring.length
      const head = kept.subarray(0, ring.length - at)
      ring.set(head, at)
      ring.set(kept.subarray(head.length), 0)
      total = end
    },
    truncated: () => total > limit,
    text() {
      if (total <= ring.length && total <= limit) return ring.toString('utf8', 0, total)
      const bytes = held()
      const cut = bytes.length - limit
      return bytes.toString('utf8', cut + halvedCharacter(bytes, cut))
    },
    bytes: () => held().subarray(-limit),
    total: () => total,
  }
}

const unroll = (ring: Buffer, start: number) => Buffer.concat([ring.subarray(start), ring.subarray(0, start)])

/** How many bytes after the cut belong to a character that began before it. */
function halvedCharacter(bytes: Buffer, cut: number): number {
  for (let lead = cut - 1; lead >= 0; lead--) {
    const byte = bytes[lead]
    if (isContinuation(byte)) continue
    const rest = lead + characterLength(byte ?? 0) - cut
    if (rest <= 0) return 0
    for (let index = cut; index < cut + rest; index++) if (!isContinuation(bytes[index])) return 0
    return rest
  }
  return 0
}
