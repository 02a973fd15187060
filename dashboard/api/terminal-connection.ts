// A terminal session over WebSockets (shared/attach-format.ts): the next one continues where the previous one was lost, so that
// no byte of the output or the input is missing or repeated.
import { BoxwoodError, createError } from '../../client/http/errors.ts'
import type { ClientMessage, ServerMessage } from '../../shared/api/attach.ts'
import { TerminalInput } from './terminal-input.ts'
import { TerminalOutput, type TerminalSink } from './terminal-output.ts'

export type TerminalSocket = { send(data: string | Uint8Array<ArrayBuffer>): void; close(): void }
export type TerminalSocketHandlers = {
  onText(text: string): void
  onBytes(bytes: Uint8Array): void
  onClose(): void
}
export type TerminalSize = { cols: number; rows: number }
export type TerminalExit = Extract<ServerMessage, { type: 'exit' }>

export type TerminalState =
  | { type: 'connecting' | 'connected' | 'detached' }
  /** The next attempt follows by itself. */
  | { type: 'lost'; error: BoxwoodError }
  | { type: 'exited'; exit: TerminalExit }
  /** No new connection can help. */
  | { type: 'failed'; error: BoxwoodError }

export type TerminalOptions = {
  session: string
  /** The random id of this client: a client that connects again with its id continues its input. */
  client: string
  connect(query: Record<string, string>, handlers: TerminalSocketHandlers): TerminalSocket
  /** Why a connection was refused, which a browser does not report: rejects with BoxwoodError. Resolves when the session exists. */
  checkSession(session: string): Promise<void>
  sink: TerminalSink
  onState(state: TerminalState): void
  /** Returns a function that cancels the timer. */
  setTimer(run: () => void, ms: number): () => void
  /** A number from 0 to 1. */
  random(): number
}

const BACKOFF = { baseMs: 250, maxMs: 5_000 }
/** A later attempt may succeed. */
const TEMPORARY_CODES = ['box_unreachable', 'control_plane_unavailable', 'no_response', 'invalid_response']
const LOST = createError({
  code: 'no_response',
  message: 'The connection to the terminal is lost.',
  status: 0,
})
const STOPPING = createError({
  code: 'control_plane_unavailable',
  message: 'The coordinator is stopping.',
  status: 0,
})

export class TerminalConnection {
  readonly #options: TerminalOptions
  readonly #input: TerminalInput
  readonly #output: TerminalOutput
  #socket: TerminalSocket | null = null
  /** The message `attached` has arrived. */
  #isAttached = false
  #isEnded = false
  #isPaused = false
  #failures = 0
  #size: TerminalSize | null = null
  /** The size that the server has from this connection. */
  #sentSize: TerminalSize | null = null
  #cancelTimer: () => void = () => undefined

  constructor(options: TerminalOptions) {
    this.#options = options
    this.#input = new TerminalInput((bytes) => this.#socket?.send(bytes))
    this.#output = new TerminalOutput(options.sink, (stdoutOffset) =>
      this.#send({ type: 'ack', stdoutOffset, stderrOffset: 0 }),
    )
  }

  /** @param size that of the view; null: the view is not laid out */
  open(size: TerminalSize | null): void {
    this.#size = size
    this.#options.onState({ type: 'connecting' })
    this.#connect()
  }

  write(text: string): void {
    if (!this.#isEnded) this.#input.write(new TextEncoder().encode(text))
  }

  resize(size: TerminalSize): void {
    this.#size = size
    this.#sendSize()
  }

  /** Replaces a connection that may be lost without a notice, and does not wait for the next attempt. */
  reconnect(): void {
    if (this.#isEnded || this.#isPaused) return
    this.#release()
    this.#failures = 0
    this.#options.onState({ type: 'connecting' })
    this.#connect()
  }

  /** A page that displays no output would block the program, whose output waits for its readers. */
  pause(): void {
    this.#isPaused = true
    this.#release()
  }

  resume(): void {
    if (!this.#isPaused) return
    this.#isPaused = false
    this.reconnect()
  }

  /** Connects again after a failure, such as that of a box that was suspended. */
  reopen(): void {
    this.#isEnded = false
    this.reconnect()
  }

  /** The session stays. */
  detach(): void {
    this.#send({ type: 'detach' })
    this.#end({ type: 'detached' })
  }

  #connect(): void {
    const { session, client, connect } = this.#options
    const offset = this.#output.startConnection()
    this.#isAttached = false
    this.#sentSize = this.#size
    const handlers: TerminalSocketHandlers = {
      onText: (text) => {
        if (this.#socket === socket) this.#receive(JSON.parse(text) as ServerMessage, offset)
      },
      onBytes: (bytes) => {
        if (this.#socket === socket && this.#isAttached) this.#output.receive(bytes)
      },
      onClose: () => {
        if (this.#socket === socket) void this.#lose()
      },
    }
    const socket = connect(
      {
        session,
        client,
        create: 'never',
        ...(offset !== null && { offset: String(offset) }),
        ...(this.#size && { cols: String(this.#size.cols), rows: String(this.#size.rows) }),
      },
      handlers,
    )
    this.#socket = socket
  }

  #receive(message: ServerMessage, requested: number | null): void {
    const { sink, onState } = this.#options
    if (message.type === 'error') {
      const error = createError({ code: message.code, message: message.message, status: 0 })
      if (TEMPORARY_CODES.includes(message.code)) this.#retry(error)
      else this.#end({ type: 'failed', error })
    } else if (message.type === 'reconnect') this.#retry(STOPPING)
    else if (message.type === 'attached') {
      this.#isAttached = true
      this.#failures = 0
      this.#output.attach(message.stdoutOffset, requested)
      this.#input.resume(message.stdinOffset)
      this.#sendSize()
      onState({ type: 'connected' })
    } else if (message.type === 'stdin') this.#input.accept(message.offset)
    else if (message.type === 'screen') this.#output.startScreen(message)
    else if (message.type === 'resized') sink.resize(message)
    else if (message.type === 'exit') {
      this.#send({ type: 'exitReceived' })
      this.#end({ type: 'exited', exit: message })
    }
  }

  #sendSize(): void {
    if (this.#size === null || this.#size === this.#sentSize || !this.#isAttached) return
    this.#sentSize = this.#size
    this.#send({ type: 'resize', ...this.#size })
  }

  #send(message: ClientMessage): void {
    if (this.#isAttached) this.#socket?.send(JSON.stringify(message))
  }

  /** The connection is closed. One that was never attached was refused, or there is no network. */
  async #lose(): Promise<void> {
    const wasAttached = this.#isAttached
    const { session, checkSession } = this.#options
    this.#release()
    if (wasAttached) {
      this.#retry(LOST)
      return
    }
    // A new socket, opened meanwhile, makes the result irrelevant.
    const error = await checkSession(session).then(
      () => LOST,
      (reason) => (reason instanceof BoxwoodError ? reason : LOST),
    )
    if (this.#socket !== null || this.#isPaused || this.#isEnded) return
    if (error === LOST || TEMPORARY_CODES.includes(error.code) || error.status >= 500) this.#retry(error)
    else this.#end({ type: 'failed', error })
  }

  #retry(error: BoxwoodError): void {
    this.#release()
    this.#options.onState({ type: 'lost', error })
    const delay = Math.min(BACKOFF.baseMs * 2 ** this.#failures, BACKOFF.maxMs)
    this.#failures += 1
    this.#cancelTimer = this.#options.setTimer(
      () => this.#connect(),
      delay * (0.5 + this.#options.random() / 2),
    )
  }

  #release(): void {
    this.#cancelTimer()
    this.#input.pause()
    const socket = this.#socket
    this.#socket = null
    this.#isAttached = false
    socket?.close()
  }

  #end(state: TerminalState): void {
    if (this.#isEnded) return
    this.#isEnded = true
    this.#release()
    this.#options.onState(state)
  }
}
