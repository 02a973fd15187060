// Masks values in a stream of bytes. The length stays the same, so the framing around the bytes does not change.
import type { Matcher, Range } from './matcher.ts'

const MASK = 0x2a
const EMPTY = Buffer.alloc(0)

/** Holds back only the bytes at the end that may be the start of a value. */
export class Scrubber {
  readonly #matcher: Matcher
  /** The bytes that are held back, unmasked. */
  #pending: Buffer = EMPTY
  /** This number of the pending bytes are masked, because they are the end of a value. */
  #masked = 0

  constructor(matcher: Matcher) {
    this.#matcher = matcher
  }

  /** Returns what can be sent. May change the chunk. */
  push(chunk: Buffer): Buffer {
    const data = this.#pending.length === 0 ? chunk : Buffer.concat([this.#pending, chunk])
    const ranges = this.#matcher.findAll(data)
    const sent = data.length - this.#matcher.countPending(data)
    // What begins in the pending bytes is found again with the next chunk.
    const maskedTo = ranges.reduce(
      (max, { start, end }) => (start < sent ? Math.max(max, end) : max),
      this.#masked,
    )
    // A copy: the masks below must not change it, and the chunk may be freed.
    const pending = sent === data.length ? EMPTY : Buffer.from(data.subarray(sent))
    this.#mask(data, ranges)
    this.#pending = pending
    this.#masked = Math.max(0, maskedTo - sent)
    return sent === data.length ? data : data.subarray(0, sent)
  }

  /** Returns the bytes that are held back. */
  flush(): Buffer {
    const data = this.#pending
    this.#mask(data, this.#matcher.findAll(data))
    this.#pending = EMPTY
    this.#masked = 0
    return data
  }

  #mask(data: Buffer, ranges: readonly Range[]): void {
    data.fill(MASK, 0, this.#masked)
    for (const { start, end } of ranges) data.fill(MASK, start, end)
  }
}

/** @param matcher null: there is nothing to mask */
export function scrubText(matcher: Matcher | null, text: string): string {
  if (matcher === null) return text
  const data = Buffer.from(text, 'latin1')
  const ranges = matcher.findAll(data)
  if (ranges.length === 0) return text
  for (const { start, end } of ranges) data.fill(MASK, start, end)
  return data.toString('latin1')
}
