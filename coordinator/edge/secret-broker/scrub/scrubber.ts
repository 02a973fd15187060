// Masks values in a stream of bytes. The length stays the same, so the framing around the bytes does not change.
import { type Matcher, type Range, START } from './matcher.ts'

const MASK = 0x2a
const EMPTY = Buffer.alloc(0)

/** Holds back only the bytes at the end that may be the start of a value. */
export class Scrubber {
  readonly #matchers: readonly Matcher[]
  #states: number[]
  /** The bytes that are held back. What is a value in them is masked. */
  #pending: Buffer = EMPTY

  constructor(matchers: readonly Matcher[]) {
    this.#matchers = matchers
    this.#states = matchers.map(() => START)
  }

  /** Returns what can be sent. May change the chunk. */
  push(chunk: Buffer): Buffer {
    const from = this.#pending.length
    const data = from === 0 ? chunk : Buffer.concat([this.#pending, chunk])
    const found = this.#matchers.map((): Range[] => [])
    this.#states = this.#matchers.map((matcher, index) =>
      matcher.scan(data, { from, state: this.#states[index] ?? START, found: found[index] ?? [] }),
    )
    // All matchers have read the data before it is changed.
    for (const { start, end } of found.flat()) data.fill(MASK, start, end)
    const pending = this.#matchers.reduce(
      (most, matcher, index) => Math.max(most, matcher.countPending(this.#states[index] ?? START)),
      0,
    )
    const sent = data.length - pending
    // A copy: later masks must not change what was sent, and the chunk may be freed.
    this.#pending = pending === 0 ? EMPTY : Buffer.from(data.subarray(sent))
    return pending === 0 ? data : data.subarray(0, sent)
  }

  /** Returns the bytes that are held back. */
  flush(): Buffer {
    const data = this.#pending
    this.#pending = EMPTY
    this.#states = this.#matchers.map(() => START)
    return data
  }
}

/** @param text one character for each byte, as the headers in Node */
export function scrubText(matchers: readonly Matcher[], text: string): string {
  if (matchers.length === 0) return text
  const data = Buffer.from(text, 'latin1')
  const found = matchers.map((matcher): Range[] => {
    const ofMatcher: Range[] = []
    matcher.scan(data, { from: 0, state: START, found: ofMatcher })
    return ofMatcher
  })
  for (const { start, end } of found.flat()) data.fill(MASK, start, end)
  return data.toString('latin1')
}
