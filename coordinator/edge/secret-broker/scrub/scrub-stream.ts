// Masks values in the body of a response.
import { Transform, type TransformCallback } from 'node:stream'
import type { Matcher } from './matcher.ts'
import { Scrubber } from './scrubber.ts'

export class ScrubStream extends Transform {
  readonly #scrubber: Scrubber

  constructor(matchers: readonly Matcher[]) {
    super()
    this.#scrubber = new Scrubber(matchers)
  }

  override _transform(chunk: Buffer, _encoding: BufferEncoding, done: TransformCallback): void {
    done(null, this.#scrubber.push(chunk))
  }

  override _flush(done: TransformCallback): void {
    done(null, this.#scrubber.flush())
  }
}
