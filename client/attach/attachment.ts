// An attached command or terminal: output and stdin over connections that resume where the previous one was lost.
import type { AttachClientMessage } from '../generated/types.ts'
import { BoxwoodError, createError, createInvalidError } from '../http/errors.ts'
import { createReconnect, isTemporary, type Reconnect } from '../http/reconnect.ts'
import type { Socket, SocketHandlers } from '../http/socket.ts'
import { type Connection, type Outcome, openConnection } from './connection.ts'
import { createDeferred, type Deferred } from './deferred.ts'
import type { Offsets, TerminalSize } from './format.ts'
import type { AttachedMessage, ExitMessage, Message, OutputBytes, ServerMessage } from './messages.ts'
import { type OutputMessage, OutputQueue } from './output-queue.ts'
import type { OutputSink } from './sink-writer.ts'
import { StdinWindow } from './stdin-window.ts'

export type AttachmentOptions = {
  /** Opens a connection that continues the output at `position`; null: with the screen of a terminal. */
  connect(position: Offsets | null, handlers: SocketHandlers, signal: AbortSignal): Promise<Socket>
  /** Requests why a connection was refused, where the runtime hides it. Rejects with BoxwoodError. */
  check?: (signal: AbortSignal) => Promise<unknown>
  start: Offsets | null
  sink: OutputSink
  signal?: AbortSignal | undefined
  /** How long the connection may be interrupted, in milliseconds. Default: Infinity. */
  outageMs?: number
  /** A connection without data for this long is closed. Default: three intervals of pings, 45 s. */
  idleTimeoutMs?: number
  /** Called for each connection. */
  onAttached?(message: AttachedMessage): void
  /** null: a connection is attached; else why it was lost, and the next attempt follows. */
  onConnection?(error: BoxwoodError | null): void
  /** Called for each message of an attached connection: an outage is over. */
  onData?(): void
  /** No new connection can help. Returns true: the attachment pauses. Default: `result` rejects. */
  onFailure?(error: BoxwoodError): boolean
  /** The agent has restarted and lost bytes of stdin. It terminates the command. */
  onStdinLost?(): void
}

export type Attachment = {
  /**
   * Resolves with the exit when the sink has processed all output, or with null when the client is detached. Rejects with
   * the errors of the sink, with the signal's reason, and with a BoxwoodError when a new connection cannot help.
   */
  result: Promise<ExitMessage | null>
  /** Resolves when more bytes can be written: with false when no further bytes are needed. */
  writeStdin(bytes: Uint8Array): Promise<boolean>
  endStdin(): void
  detach(): void
  resize(size: TerminalSize): void
  /** Replaces the current connection by a new one, and does not wait for the next attempt. */
  reconnect(): void
  /** Closes the connection until `resume` is called. */
  pause(): void
  resume(): void
}

export function attach(options: AttachmentOptions): Attachment {
  const runner = new AttachmentRunner(options)
  return {
    result: runner.run(),
    writeStdin: (bytes) => runner.stdin.write(bytes),
    endStdin: () => runner.stdin.end(),
    detach: () => runner.detach(),
    resize: (size) => runner.resize(size),
    reconnect: () => runner.interrupt(),
    pause: () => runner.pause(),
    resume: () => runner.resume(),
  }
}

const IDLE_TIMEOUT_MS = 45_000
/** The code with which the server closes a connection after `detach` and `exitReceived`. */
const CLOSE_NORMAL = 1000

/** The statuses of the errors that arrive as messages. A later attempt helps only after those of TEMPORARY_CODES. */
const ERROR_STATUSES: Readonly<Record<string, number>> = {
  unauthorized: 401,
  token_expired: 401,
  forbidden: 403,
  not_found: 404,
  box_not_running: 409,
  exec_failed: 502,
  box_unreachable: 502,
  control_plane_unavailable: 503,
}
const TEMPORARY_CODES = ['box_unreachable', 'control_plane_unavailable']
const STOPPING = {
  code: 'control_plane_unavailable',
  message: 'The coordinator is stopping.',
  status: 0,
}

class AttachmentRunner {
  readonly stdin = new StdinWindow((data) => this.#connection?.send(data))
  readonly #options: AttachmentOptions
  readonly #output: OutputQueue
  readonly #reconnect: Reconnect
  /** Resolves with the exit when the sink has processed all output. */
  readonly #finished = createDeferred<ExitMessage>()
  #connection: Connection | null = null
  /** The connection has received the message `attached`. */
  #isAttached = false
  #wasAttached = false
  #isDetaching = false
  #pendingSize: TerminalSize | null = null
  /** Aborts the wait for the next connection. */
  #wake = new AbortController()
  #pause: Deferred<void> | null = null
  #isEnded = false

  constructor(options: AttachmentOptions) {
    this.#options = options
    this.#reconnect = createReconnect(options.outageMs ?? Number.POSITIVE_INFINITY, undefined)
    this.#output = new OutputQueue({
      start: options.start,
      sink: options.sink,
      onAck: ({ stdout, stderr }) => this.#send({ type: 'ack', stdoutOffset: stdout, stderrOffset: stderr }),
      onExit: this.#finished.resolve,
      onError: this.#finished.reject,
    })
  }

  /** Settles as Attachment.result does. */
  async run(): Promise<ExitMessage | null> {
    const { signal } = this.#options
    const onAbort = () => this.#finished.reject(signal?.reason)
    signal?.addEventListener('abort', onAbort)
    if (signal?.aborted) onAbort()
    try {
      const exit = await Promise.race([this.#finished.promise, this.#runConnections()])
      if (exit !== null) this.#send({ type: 'exitReceived' })
      await this.#connection?.close()
      return exit
    } finally {
      signal?.removeEventListener('abort', onAbort)
      this.#isEnded = true
      this.#connection?.abort()
      this.#wake.abort()
      this.stdin.close()
    }
  }

  detach(): void {
    this.#isDetaching = true
    this.#send({ type: 'detach' })
  }

  resize(size: TerminalSize): void {
    if (!this.#isAttached) this.#pendingSize = size
    else this.#send({ type: 'resize', ...size })
  }

  interrupt(): void {
    if (this.#pause !== null) return
    this.#reconnect.recordData()
    this.#wake.abort()
    this.#connection?.drop(null)
  }

  pause(): void {
    if (this.#pause !== null) return
    this.interrupt()
    this.#pause = createDeferred()
  }

  resume(): void {
    this.#pause?.resolve()
    this.#pause = null
  }

  async #runConnections(): Promise<ExitMessage | null> {
    for (;;) {
      while (this.#pause !== null) await this.#pause.promise
      this.#wake = new AbortController()
      const outcome = await this.#runConnection()
      // The exit was received, but the sink has not processed all output.
      if (this.#isEnded || this.#output.isComplete) return this.#finished.promise
      if (outcome === null) continue
      if (this.#isDetaching && outcome.isDetached) return null
      await this.#waitAfter(outcome)
    }
  }

  async #runConnection(): Promise<(Outcome & { isDetached: boolean }) | null> {
    const { connect, check, idleTimeoutMs = IDLE_TIMEOUT_MS } = this.#options
    const position = this.#output.startConnection()
    const connection = openConnection({
      connect: (handlers, signal) => connect(position, handlers, signal),
      check,
      onMessage: (message) => this.#receive(message),
      idleTimeoutMs,
    })
    this.#connection = connection
    try {
      const outcome = await connection.outcome
      if (outcome === null) return null
      const { error, code, isRefused = false } = outcome
      // The previous connection was lost after the server had received `detach`.
      const isDetached = isRefused ? error.code === 'invalid_request' : code === CLOSE_NORMAL
      return { ...outcome, isDetached: isDetached && (isRefused || this.#isAttached) }
    } catch (error) {
      if (!(error instanceof BoxwoodError)) throw error
      return { error, canRetry: false, isDetached: false }
    } finally {
      this.#connection = null
      this.#isAttached = false
      this.stdin.pause()
    }
  }

  async #waitAfter({ error, canRetry = canRetryAfter(error, this.#wasAttached) }: Outcome): Promise<void> {
    const { signal } = this.#wake
    const { onConnection, onFailure } = this.#options
    if (signal.aborted) return
    try {
      if (!canRetry) throw error
      onConnection?.(error)
      await this.#reconnect.waitAfter(error, signal)
    } catch (failure) {
      if (signal.aborted) return
      if (!(failure instanceof BoxwoodError) || onFailure?.(failure) !== true) throw failure
      this.pause()
    }
  }

  #send(message: AttachClientMessage): void {
    if (this.#isAttached) this.#connection?.send(message)
  }

  #receive(message: ServerMessage | OutputBytes): void {
    if (message.type === 'error') this.#connection?.drop(toOutcome(message))
    else if (message.type === 'reconnect')
      this.#connection?.drop({ error: createError(STOPPING), canRetry: true })
    else if (message.type === 'attached') this.#receiveAttached(message)
    else this.#receiveData(message)
  }

  #receiveData(message: Message<'stdin' | 'stdinClosed'> | OutputMessage): void {
    if (!this.#isAttached) throw createInvalidError('a message before the message attached')
    this.#reconnect.recordData()
    this.#options.onData?.()
    if (message.type === 'stdin') this.stdin.accept(message.offset)
    else if (message.type === 'stdinClosed') this.stdin.close()
    else this.#output.push(message)
  }

  #receiveAttached(message: AttachedMessage): void {
    const { sink, onStdinLost, onConnection, onAttached } = this.#options
    if (this.#isAttached) throw createInvalidError('the message attached twice')
    this.#output.push(message)
    this.#isAttached = true
    this.#wasAttached = true
    this.#reconnect.recordAlive()
    if (!this.stdin.resume(message.stdinOffset, sink.drawScreen !== undefined)) onStdinLost?.()
    if (this.#pendingSize !== null) this.#send({ type: 'resize', ...this.#pendingSize })
    this.#pendingSize = null
    if (this.#isDetaching) this.#send({ type: 'detach' })
    onConnection?.(null)
    onAttached?.(message)
  }
}

const toOutcome = ({ code, message }: Message<'error'>): Outcome => ({
  error: createError({ code, message, status: ERROR_STATUSES[code] ?? 400 }),
  canRetry: TEMPORARY_CODES.includes(code),
})

/** When a connection was lost, the coordinator may still count it. */
const canRetryAfter = (error: BoxwoodError, wasAttached: boolean): boolean =>
  isTemporary(error, wasAttached) && (wasAttached || error.code !== 'customer_session_limit')
