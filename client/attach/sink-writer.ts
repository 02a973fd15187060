// Passes output to a sink, one item at a time and in order, and reports what the sink has processed.
import { concatBytes, type Offsets, type OutputChannel, type TerminalSize } from './format.ts'
import type { ExitMessage, OutputBytes } from './messages.ts'

/** Receives the output. Each call waits for the promise of the previous one. */
export type OutputSink = {
  write(channel: OutputChannel, bytes: Uint8Array<ArrayBuffer>): Promise<void> | void
  /** The box has discarded `bytes` bytes at this position. */
  reportMissing?(channel: OutputChannel, bytes: number): void
  /** Only a terminal has this function: it clears the terminal, and writes the bytes, which draw the whole screen at `end`. */
  drawScreen?(bytes: Uint8Array<ArrayBuffer>, size: TerminalSize, end: Offsets): Promise<void> | void
  /** The terminal has this size now. */
  resize?(size: TerminalSize): Promise<void> | void
}

export type SinkWriterOptions = {
  /** null: the sink first needs the current screen of a terminal. */
  start: Offsets | null
  sink: OutputSink
  /** The sink has processed the output up to these offsets. `bytes`: since the previous call, without screens. */
  onAck(offsets: Offsets, bytes: number): void
  /** The sink has processed all output. */
  onExit(exit: ExitMessage): void
  /** An error of the sink. */
  onError(error: unknown): void
}

/** `end`: the position after the item. */
export type SinkItem =
  | OutputBytes
  | { type: 'screen'; bytes: Uint8Array<ArrayBuffer>; size: TerminalSize; end: Offsets }
  | { type: 'resized'; size: TerminalSize }
  | { type: 'skipped'; end: Offsets }
  | { type: 'exit'; exit: ExitMessage; end: Offsets }

/** Bytes that the sink processes before the next ack. */
const ACK_BYTES = 512 * 1024
/** Chunks that wait for the sink are joined up to this size. */
const JOINED_BYTES = 64 * 1024

export class SinkWriter {
  readonly #options: SinkWriterOptions
  #items: SinkItem[] = []
  #isProcessing = false
  #position: Offsets | null
  #processed = 0

  constructor(options: SinkWriterOptions) {
    this.#options = options
    this.#position = options.start
  }

  /** The position after the output that the sink has received. null: a screen must be drawn first. */
  get position(): Offsets | null {
    return this.#position
  }

  /** The bytes of output that the sink has processed since the last ack. */
  get processed(): number {
    return this.#processed
  }

  add(item: SinkItem): void {
    this.#items.push(item)
    void this.#processItems()
  }

  /** Discards the output that the sink has not received. */
  discardItems(): void {
    this.#items = this.#items.filter(({ type }) => type === 'resized')
  }

  /** The next connection counts the processed bytes from 0. */
  resetProcessed(): void {
    this.#processed = 0
  }

  /** The output after the position is unknown: a screen must be drawn first. */
  requireScreen(): void {
    this.#position = null
  }

  async #processItems(): Promise<void> {
    if (this.#isProcessing) return
    this.#isProcessing = true
    try {
      for (let item = this.#items.shift(); item !== undefined; item = this.#items.shift())
        await this.#processItem(item)
    } catch (error) {
      this.#options.onError(error)
    } finally {
      this.#isProcessing = false
    }
  }

  async #processItem(item: SinkItem): Promise<void> {
    const { sink, onExit } = this.#options
    if (item.type === 'output') {
      const { channel } = item
      const bytes = this.#join(item)
      // The screen that follows includes the output.
      if (this.#position === null) return
      this.#position = { ...this.#position, [channel]: this.#position[channel] + bytes.length }
      await sink.write(channel, bytes)
      this.#processed += bytes.length
      if (this.#processed >= ACK_BYTES) this.#acknowledge()
      return
    }
    if (item.type === 'resized') return sink.resize?.(item.size)
    if (item.type !== 'screen') this.#reportMissing(item.end)
    this.#position = item.end
    if (item.type === 'screen') await sink.drawScreen?.(item.bytes, item.size, item.end)
    if (item.type === 'exit') onExit(item.exit)
    else this.#acknowledge()
  }

  /** The bytes of the item, and of those that follow it on its channel. */
  #join({ channel, bytes }: OutputBytes): Uint8Array<ArrayBuffer> {
    const chunks = [bytes]
    let { length } = bytes
    for (
      let next = this.#items[0];
      next?.type === 'output' && next.channel === channel;
      next = this.#items[0]
    ) {
      length += next.bytes.length
      if (length > JOINED_BYTES) break
      chunks.push(next.bytes)
      this.#items.shift()
    }
    return chunks.length === 1 ? bytes : concatBytes(chunks)
  }

  #acknowledge(): void {
    if (this.#position === null) return
    const bytes = this.#processed
    this.#processed = 0
    this.#options.onAck(this.#position, bytes)
  }

  #reportMissing(end: Offsets): void {
    if (this.#position === null) return
    for (const channel of ['stdout', 'stderr'] as const) {
      const missing = end[channel] - this.#position[channel]
      if (missing > 0) this.#options.sink.reportMissing?.(channel, missing)
    }
  }
}
