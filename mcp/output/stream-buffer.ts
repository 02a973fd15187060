// Keeps the first and the last bytes of a stream, whatever its size.
import { type Fitted, fit, measure } from '../text/fit.ts'

/** More than fits into an answer: escape sequences are removed. */
const KEPT_BYTES = 64 * 1024
/** Of the text, for the first part. The last one has the result of a command. */
const START_SHARE = 0.4

/** The first bytes are not known. */
const NOTHING: Fitted = { text: '', bytes: 0 }

export type Excerpt = {
  text: string
  /** The bytes that the text omits; null: none. */
  omitted: { offset: number; bytes: number } | null
}

export class StreamBuffer {
  /** Where the bytes begin, in the stream. */
  readonly from: number
  /** Where the bytes end, in the stream. */
  end: number
  /** The bytes before the first one that was read: the box had discarded them. */
  missing = 0
  /** The box has discarded bytes after the first part. */
  #hasGap = false
  #start: Buffer<ArrayBufferLike> = Buffer.alloc(0)
  #parts: Buffer[] = []
  #partBytes = 0

  constructor(from: number) {
    this.from = from
    this.end = from
  }

  get length(): number {
    return this.end - this.from
  }

  /** @param missing the bytes before these that the box had discarded */
  add(bytes: Uint8Array<ArrayBuffer>, missing: number): void {
    this.end += missing + bytes.length
    if (missing > 0) this.#addGap(missing)
    const startBytes = this.#hasGap ? 0 : Math.max(0, Math.min(bytes.length, KEPT_BYTES - this.#start.length))
    if (startBytes > 0) this.#start = Buffer.concat([this.#start, bytes.subarray(0, startBytes)])
    if (startBytes === bytes.length) return
    this.#parts.push(Buffer.from(bytes.subarray(startBytes)))
    this.#partBytes += bytes.length - startBytes
    while (this.#partBytes - (this.#parts[0]?.length ?? 0) >= KEPT_BYTES)
      this.#partBytes -= this.#parts.shift()?.length ?? 0
  }

  /** Both parts are without gaps, so that their sizes are exact. */
  #addGap(bytes: number): void {
    if (this.#start.length === 0) {
      this.missing += bytes
      return
    }
    this.#hasGap = true
    this.#parts = []
    this.#partBytes = 0
  }

  /** The size of the whole text in JSON; Infinity when it is larger than what is kept. */
  measure(clean: (text: string) => string): number {
    return this.#isWhole() ? measure(clean(this.#join().toString())) : Number.POSITIVE_INFINITY
  }

  /** The first and the last part, in at most `budget` bytes of JSON. */
  getExcerpt(budget: number, clean: (text: string) => string): Excerpt {
    const kept = this.#join()
    if (this.#isWhole()) {
      const whole = fit(kept, budget, 'start', clean)
      if (whole.bytes === kept.length) return { text: whole.text, omitted: null }
    }
    const isJoined = this.#isJoined()
    const startBudget = Math.floor(budget * START_SHARE)
    const start = this.missing > 0 ? NOTHING : fit(isJoined ? kept : this.#start, startBudget, 'start', clean)
    const rest = isJoined ? kept.subarray(start.bytes) : Buffer.concat(this.#parts)
    // The line about the omitted bytes takes the difference.
    const end = fit(rest, budget - startBudget - 200, 'end', clean)
    const offset = this.from + start.bytes
    const bytes = this.end - end.bytes - offset
    const line = `[${bytes} bytes are not shown, from offset ${offset} on]\n`
    const newline = start.text === '' || start.text.endsWith('\n') ? '' : '\n'
    return { text: `${start.text}${newline}${line}${end.text}`, omitted: { offset, bytes } }
  }

  /** The first part: a page. */
  getPage(budget: number, clean: (text: string) => string): { text: string; nextOffset: number } {
    const { text, bytes } = fit(this.#start, budget, 'start', clean)
    return { text, nextOffset: this.from + this.missing + bytes }
  }

  #isWhole(): boolean {
    return this.missing === 0 && this.#isJoined()
  }

  /** Nothing is between the first and the last part. */
  #isJoined(): boolean {
    return this.missing + this.#start.length + this.#partBytes === this.length
  }

  #join(): Buffer {
    return Buffer.concat([this.#start, ...this.#parts])
  }
}
