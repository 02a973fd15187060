// Passes output to a sink, one item at a time and in order, and reports what the sink has processed.
import type { OutputBytes } from '../../shared/api/attach.ts'
import type { Offsets } from '../../shared/api/processes.ts'
import type { OutputChannel } from '../../shared/attach-format.ts'
import type { ExitMessage } from './messages.ts'

/** Receives the output. Each call waits for the promise of the previous one. */
export type OutputSink = {
  write(channel: OutputChannel, bytes: Buffer): Promise<void>
  /** The box has discarded `bytes` bytes at this position. */
  reportMissing(channel: OutputChannel, bytes: number): void
  /** Only a terminal has this function: it clears the terminal, and writes the bytes, which draw the whole screen. */
  drawScreen?(bytes: Buffer): Promise<void>
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
  | { type: 'screen'; bytes: Buffer; end: Offsets }
  | { type: 'skipped'; end: Offsets }
  | { type: 'exit'; exit: ExitMessage; end: Offsets }

/** Bytes that the sink processes before the next ack. */
const ACK_BYTES = 512 * 1024
/** Chunks are joined up to this size while the sink is busy. */
const JOINED_BYTES = 4096

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
    const last = this.#items.at(-1)
    if (
      item.type === 'output' &&
      last?.type === 'output' &&
      last.channel === item.channel &&
      last.bytes.length + item.bytes.length <= JOINED_BYTES
    )
      last.bytes = Buffer.concat([last.bytes, item.bytes])
    else this.#items.push(item)
    void this.#processItems()
  }

  /** Discards the items that the sink has not received. */
  discardItems(): void {
    this.#items = []
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
      const { channel, bytes } = item
      if (this.#position !== null)
        this.#position = { ...this.#position, [channel]: this.#position[channel] + bytes.length }
      await sink.write(channel, bytes)
      this.#processed += bytes.length
      if (this.#processed >= ACK_BYTES) this.#acknowledge()
      return
    }
    if (item.type !== 'screen') this.#reportMissing(item.end)
    this.#position = item.end
    if (item.type === 'screen') await sink.drawScreen?.(item.bytes)
    if (item.type === 'exit') onExit(item.exit)
    else this.#acknowledge()
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
      if (missing > 0) this.#options.sink.reportMissing(channel, missing)
    }
  }
}
