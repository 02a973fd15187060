// Received output that waits for the sink: checks its offsets and the window, and passes each byte on once, in order.
import type { OutputBytes, ServerMessage } from '../../shared/api/attach.ts'
import type { Offsets } from '../../shared/api/processes.ts'
import { ATTACH_LIMITS, type OutputChannel } from '../../shared/attach-format.ts'
import { invalidDataError } from '../connection/server-data.ts'
import type { AttachedMessage, ExitMessage } from './messages.ts'
import { SinkWriter, type SinkWriterOptions } from './sink-writer.ts'

export type OutputQueueOptions = Omit<SinkWriterOptions, 'onAck'> & {
  /** The sink has processed the output up to these offsets. */
  onAck(offsets: Offsets): void
}

type Message<Type extends ServerMessage['type']> = Extract<ServerMessage, { type: Type }>
export type OutputMessage = OutputBytes | Message<'screen'> | Message<'skipped'> | ExitMessage

/** `missing`: in bytes. `end`: the position after the screen. */
type PartialScreen = { chunks: Buffer[]; missing: number; end: Offsets }

/** Larger than the screen and scrollback of any terminal. */
const MAX_SCREEN_BYTES = 64 * 1024 * 1024

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

  /** @throws CliError when offsets do not match, or the server exceeds the window */
  push(message: AttachedMessage | OutputMessage): void {
    if (this.#isComplete) return
    if (message.type === 'attached') this.#receiveAttached(message)
    else if (message.type === 'output') this.#receiveOutput(message)
    else if (message.type === 'screen') this.#startScreen(message)
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
      throw invalidDataError('more output than was acknowledged')
    this.#received = { ...this.#received, [channel]: this.#received[channel] + rest.length }
    this.#writer.add({ type: 'output', channel, bytes: rest })
  }

  #startScreen(message: Message<'screen'>): void {
    if (!this.#canDrawScreen || message.bytes > MAX_SCREEN_BYTES)
      throw invalidDataError('an unexpected screen')
    const end = this.#advance(message)
    // The screen includes the output that the sink has not received.
    this.#writer.discardItems()
    this.#unacknowledged = this.#writer.processed
    this.#screen = { chunks: [], missing: message.bytes, end }
    this.#finishScreen(this.#screen)
  }

  /** Returns the bytes after the screen. */
  #receiveScreen(screen: PartialScreen, channel: OutputChannel, bytes: Buffer): Buffer {
    if (channel !== 'stdout') throw invalidDataError('output inside a screen')
    const part = bytes.subarray(0, screen.missing)
    screen.chunks.push(part)
    screen.missing -= part.length
    this.#finishScreen(screen)
    return bytes.subarray(part.length)
  }

  #finishScreen({ chunks, missing, end }: PartialScreen): void {
    if (missing > 0) return
    this.#screen = null
    this.#writer.add({ type: 'screen', bytes: Buffer.concat(chunks), end })
  }

  /** @throws CliError when the offsets decrease */
  #advance({ stdoutOffset, stderrOffset }: { stdoutOffset: number; stderrOffset: number }): Offsets {
    if (stdoutOffset < this.#received.stdout || stderrOffset < this.#received.stderr)
      throw invalidDataError('an offset that is smaller than a previous one')
    this.#received = { stdout: stdoutOffset, stderr: stderrOffset }
    return this.#received
  }
}
