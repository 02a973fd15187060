// The output of a terminal: passes each byte on once, draws screens, and acknowledges what was displayed.
import type { ServerMessage } from '../../shared/api/attach.ts'

export type TerminalSink = {
  /** Calls `onDone` when the bytes are displayed. */
  write(bytes: Uint8Array, onDone: () => void): void
  /** Clears the terminal, gives it the size, and writes the bytes, which draw the whole screen. */
  drawScreen(bytes: Uint8Array, size: { cols: number; rows: number }, onDone: () => void): void
  resize(size: { cols: number; rows: number }): void
}

type ScreenMessage = Extract<ServerMessage, { type: 'screen' }>
type PartialScreen = { message: ScreenMessage; chunks: Uint8Array[]; missing: number }

/** The server sends at most 1 MiB beyond the acknowledged offset. */
const ACK_BYTES = 128 * 1024
/** Larger than the screen and the scrollback of any terminal. */
const MAX_SCREEN_BYTES = 64 * 1024 * 1024
const STDOUT_CHANNEL = 1

export class TerminalOutput {
  readonly #sink: TerminalSink
  readonly #acknowledge: (offset: number) => void
  /** The offset after the output that the sink has received. Null: a screen must be drawn first. */
  #position: number | null = null
  #displayed = 0
  #acknowledged = 0
  #screen: PartialScreen | null = null

  constructor(sink: TerminalSink, acknowledge: (offset: number) => void) {
    this.#sink = sink
    this.#acknowledge = acknowledge
  }

  /** Returns where the next connection continues; null: with a screen. */
  startConnection(): number | null {
    // The output of an incomplete screen follows only after the whole screen.
    if (this.#screen !== null) this.#position = null
    this.#screen = null
    return this.#position
  }

  attach(offset: number, requested: number | null): void {
    this.#acknowledged = offset
    if (offset !== requested) this.#position = null
  }

  startScreen(message: ScreenMessage): void {
    if (message.bytes > MAX_SCREEN_BYTES) throw new RangeError('The screen is too large.')
    this.#screen = { message, chunks: [], missing: message.bytes }
    this.#finishScreen(this.#screen)
  }

  /** @param data with the byte of the channel */
  receive(data: Uint8Array): void {
    if (data[0] !== STDOUT_CHANNEL) return
    const bytes =
      this.#screen === null ? data.subarray(1) : this.#receiveScreen(this.#screen, data.subarray(1))
    if (bytes.length === 0 || this.#position === null) return
    const end = this.#position + bytes.length
    this.#position = end
    this.#sink.write(bytes, () => this.#display(end, ACK_BYTES))
  }

  /** Returns the bytes after the screen. */
  #receiveScreen(screen: PartialScreen, bytes: Uint8Array): Uint8Array {
    const part = bytes.subarray(0, screen.missing)
    screen.chunks.push(part)
    screen.missing -= part.length
    this.#finishScreen(screen)
    return bytes.subarray(part.length)
  }

  #finishScreen({ message, chunks, missing }: PartialScreen): void {
    if (missing > 0) return
    const bytes = new Uint8Array(message.bytes)
    let offset = 0
    for (const chunk of chunks) {
      bytes.set(chunk, offset)
      offset += chunk.length
    }
    const end = message.stdoutOffset
    this.#screen = null
    this.#position = end
    this.#sink.drawScreen(bytes, message, () => this.#display(end, 0))
  }

  /** @param least the bytes after which the server gets the offset */
  #display(offset: number, least: number): void {
    this.#displayed = Math.max(this.#displayed, offset)
    if (this.#displayed - this.#acknowledged < least || this.#displayed === this.#acknowledged) return
    this.#acknowledged = this.#displayed
    this.#acknowledge(this.#displayed)
  }
}
