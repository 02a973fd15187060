// The flow control of an attached client: how much output may be sent before the client acknowledges some of it.
import type { Offsets } from '../../../shared/api/processes.ts'
import { ATTACH_LIMITS } from '../../../shared/attach-format.ts'
import { OUTPUT_STREAMS, type StreamName } from '../detached/types.ts'

export class OutputWindow {
  readonly #sent: Offsets
  readonly #acknowledged: Offsets
  #change = Promise.withResolvers<void>()
  #isClosed = false

  /** @param from the offsets after the output that the client has */
  constructor(from: Offsets) {
    this.#sent = { ...from }
    this.#acknowledged = { ...from }
  }

  /** The offsets after the output that was sent. */
  get sent(): Readonly<Offsets> {
    return this.#sent
  }

  /** The offsets after the output that the client has acknowledged. */
  get acknowledged(): Readonly<Offsets> {
    return this.#acknowledged
  }

  /** How many bytes may be sent. 0 or less when the client is behind. */
  get freeBytes(): number {
    return OUTPUT_STREAMS.reduce(
      (free, name) => free - (this.#sent[name] - this.#acknowledged[name]),
      ATTACH_LIMITS.outputWindowBytes,
    )
  }

  /** Moves the position back to the end of the log. To be called before any output is sent. */
  limitPosition(name: StreamName, end: number): void {
    this.#sent[name] = Math.min(this.#sent[name], end)
    this.#acknowledged[name] = this.#sent[name]
  }

  /** The output up to this offset was sent, or was discarded before it could be sent. */
  advance(name: StreamName, offset: number): void {
    this.#sent[name] = offset
  }

  /** Returns false, without an effect, for an offset of output that was not sent. */
  acknowledge(offsets: Offsets): boolean {
    if (OUTPUT_STREAMS.some((name) => offsets[name] > this.#sent[name])) return false
    for (const name of OUTPUT_STREAMS)
      this.#acknowledged[name] = Math.max(this.#acknowledged[name], offsets[name])
    this.#notify()
    return true
  }

  /** Resolves when output may be sent, or after close(). */
  async waitForSpace(): Promise<void> {
    while (this.freeBytes <= 0 && !this.#isClosed) await this.#change.promise
  }

  close(): void {
    this.#isClosed = true
    this.#notify()
  }

  #notify(): void {
    this.#change.resolve()
    this.#change = Promise.withResolvers()
  }
}
