// Received output that waits for the sink: checks its offsets and the window, and passes each byte on once, in order.
import { createInvalidError } from '../http/errors.ts'
import {
  ATTACH_LIMITS,
  concatBytes,
  MAX_SCREEN_BYTES,
  type Offsets,
  type OutputChannel,
  type TerminalSize,
} from './format.ts'
import type { AttachedMessage, ExitMessage, Message, OutputBytes } from './messages.ts'
import { SinkWriter, type SinkWriterOptions } from './sink-writer.ts'

export type OutputQueueOptions = Omit<SinkWriterOptions, 'onAck'> & {
  /** The sink has processed the output up to these offsets. */
  onAck(offsets: Offsets): void
}

export type OutputMessage = OutputBytes | Message<'screen' | 'resized' | 'skipped'> | ExitMessage

/** `missing`: in bytes. `end`: the position after the screen. */
type PartialScreen = { chunks: Uint8Array<ArrayBuffer>[]; missing: number; size: TerminalSize; end: Offsets }

const NO_OUTPUT: Offsets = { stdout: 0, stderr: 0 }

export class OutputQueue {
  readonly #writer: SinkWriter
  readonly #canDrawScreen: boolean
  /** The position after all output that has been received. */
  #received: Offsets
  /** Bytes that have been received but not acknowledged. */
  #unacknowledged = 0
  /** A screen that has not been received completely. */
  #screen: PartialScreen | null = null
  #isComplete = false

  constructor({ onAck, ...options }: OutputQueueOptions) {
    this.#canDrawScreen = options.sink.drawScreen !== undefined
    this.#received = options.start ?? NO_OUTPUT
    this.#writer = new SinkWriter({
      ...options,
      onAck: (offsets, bytes) => {
        this.#unacknowledged -= bytes
        onAck(offsets)
      },
    })
  }

  /** Whether all output and the exit have been received. */
  get isComplete(): boolean {
    return this.#isComplete
  }

  /**
   * Discards the output that the sink has not received, and returns the offsets where a new connection continues: null
   * when it draws the screen first.
   */
  startConnection(): Offsets | null {
    const { position } = this.#writer
    this.#writer.discardItems()
    this.#writer.resetProcessed()
    this.#screen = null
    this.#received = position ?? NO_OUTPUT
    this.#unacknowledged = 0
    return position
  }

  /** @throws BoxwoodError when offsets do not match, or the server exceeds the window */
  push(message: AttachedMessage | OutputMessage): void {
    if (this.#isComplete) return
    if (message.type === 'attached') this.#receiveAttached(message)
    else if (message.type === 'output') this.#receiveOutput(message)
    else if (message.type === 'screen') this.#startScreen(message)
    else if (message.type === 'resized') this.#writer.add({ type: 'resized', size: toSize(message) })
    else {
      const end = this.#advance(message)
      this.#isComplete = message.type === 'exit'
      this.#writer.add(
        message.type === 'exit' ? { type: 'exit', exit: message, end } : { type: 'skipped', end },
      )
    }
  }

  #receiveAttached(message: AttachedMessage): void {
    const needsScreen = this.#writer.position === null
    const requested = this.#received
    const end = this.#advance(message)
    if (needsScreen || (end.stdout === requested.stdout && end.stderr === requested.stderr)) return
    if (!this.#canDrawScreen) this.#writer.add({ type: 'skipped', end })
    // The server does not have the output from the requested offset, and sends a screen.
    else this.#writer.requireScreen()
  }

  #receiveOutput({ channel, bytes }: OutputBytes): void {
    const rest = this.#screen === null ? bytes : this.#receiveScreen(this.#screen, channel, bytes)
    if (rest.length === 0) return
    this.#unacknowledged += rest.length
    if (this.#unacknowledged > ATTACH_LIMITS.outputWindowBytes)
      throw createInvalidError('more output than was acknowledged')
    this.#received = { ...this.#received, [channel]: this.#received[channel] + rest.length }
    this.#writer.add({ type: 'output', channel, bytes: rest })
  }

  #startScreen(message: Message<'screen'>): void {
    if (!this.#canDrawScreen || message.bytes > MAX_SCREEN_BYTES)
      throw createInvalidError('an unexpected screen')
    const end = this.#advance(message)
    // The screen includes the output that the sink has not received.
    this.#writer.discardItems()
    this.#unacknowledged = this.#writer.processed
    this.#screen = { chunks: [], missing: message.bytes, size: toSize(message), end }
    this.#finishScreen(this.#screen)
  }

  /** Returns the bytes after the screen. */
  #receiveScreen(
    screen: PartialScreen,
    channel: OutputChannel,
    bytes: Uint8Array<ArrayBuffer>,
  ): Uint8Array<ArrayBuffer> {
    if (channel !== 'stdout') throw createInvalidError('output inside a screen')
    const part = bytes.subarray(0, screen.missing)
    screen.chunks.push(part)
    screen.missing -= part.length
    this.#finishScreen(screen)
    return bytes.subarray(part.length)
  }

  #finishScreen({ chunks, missing, size, end }: PartialScreen): void {
    if (missing > 0) return
    this.#screen = null
    this.#writer.add({ type: 'screen', bytes: concatBytes(chunks), size, end })
  }

  /** @throws BoxwoodError when the offsets decrease */
  #advance({ stdoutOffset, stderrOffset }: { stdoutOffset: number; stderrOffset: number }): Offsets {
    if (stdoutOffset < this.#received.stdout || stderrOffset < this.#received.stderr)
      throw createInvalidError('an offset that is smaller than a previous one')
    this.#received = { stdout: stdoutOffset, stderr: stderrOffset }
    return this.#received
  }
}

const toSize = ({ cols, rows }: TerminalSize): TerminalSize => ({ cols, rows })
