// Reads an attachment until its exit: opens a connection, passes its messages on, and opens the next one after a disconnect.
import type { WebSocket } from 'ws'
import type { OutputBytes, ServerMessage } from '../../shared/api/attach.ts'
import type { Offsets } from '../../shared/api/processes.ts'
import { createApiError } from '../connection/api-errors.ts'
import type { ConnectResult } from '../connection/api-requests.ts'
import { invalidDataError } from '../connection/server-data.ts'
import { CONNECTION_LOST, type Disconnect, isConnectionError, toDisconnect } from '../follow/disconnect.ts'
import {
  createReconnectPolicy,
  type ReconnectOptions,
  type ReconnectPolicy,
} from '../follow/reconnect-policy.ts'
import { EXIT } from '../output/exit-codes.ts'
import type { ClientInput } from './client-input.ts'
import { type Connection, startConnection } from './connection.ts'
import type { AttachedMessage, ExitMessage } from './messages.ts'
import { OutputQueue } from './output-queue.ts'
import type { OutputSink } from './sink-writer.ts'

export type AttachmentOptions = ReconnectOptions & {
  /** Opens a connection that continues the output at `position`; null: with the screen of a terminal. */
  connect(position: Offsets | null, signal: AbortSignal): Promise<ConnectResult>
  start: Offsets | null
  sink: OutputSink
  /** Called for each connection. */
  onAttached?(message: AttachedMessage): void
  /** The agent has restarted and lost bytes of stdin. It terminates the command. */
  onStdinLost?(): void
  /** A connection without data for this long is closed. Default: three intervals of pings, 45 s. */
  idleTimeoutMs?: number
}

const IDLE_TIMEOUT_MS = 45_000
/** The code with which the server closes a connection after `detach` and `exitReceived`. */
const CLOSE_NORMAL = 1000

const RECONNECT_REQUESTED: Disconnect = { reason: 'The coordinator requested a reconnect.', retryAfter: null }

/** How a connection ended. `exit` is null after `detach`. */
type Outcome = { disconnect: Disconnect } | { exit: ExitMessage | null }

export class AttachmentReader {
  readonly #options: AttachmentOptions
  readonly #idleTimeoutMs: number
  readonly #input: ClientInput
  readonly #output: OutputQueue
  readonly #policy: ReconnectPolicy
  /** Aborts the connection and the wait for the next one. */
  readonly #stop = new AbortController()
  /** Resolves with the exit when the sink has processed all output. */
  readonly #finished = Promise.withResolvers<ExitMessage>()
  #wasConnected = false

  constructor(options: AttachmentOptions, input: ClientInput) {
    this.#options = options
    this.#idleTimeoutMs = options.idleTimeoutMs ?? IDLE_TIMEOUT_MS
    this.#input = input
    this.#policy = createReconnectPolicy({ ...options, signal: this.#stop.signal })
    this.#output = new OutputQueue({
      start: options.start,
      sink: options.sink,
      onAck: ({ stdout, stderr }) => input.send({ type: 'ack', stdoutOffset: stdout, stderrOffset: stderr }),
      onExit: this.#finished.resolve,
      onError: this.#finished.reject,
    })
  }

  /** Settles as Attachment.result does. */
  async run(): Promise<ExitMessage | null> {
    const { signal } = this.#options
    const onAbort = () => this.#finished.reject(signal.reason)
    signal.addEventListener('abort', onAbort)
    if (signal.aborted) onAbort()
    try {
      const exit = await Promise.race([this.#finished.promise, this.#runConnections()])
      if (exit !== null) this.#input.send({ type: 'exitReceived' })
      await this.#input.connection?.close()
      return exit
    } finally {
      signal.removeEventListener('abort', onAbort)
      this.#stop.abort()
      this.#input.closeStdin()
      this.#policy.close()
    }
  }

  async #runConnections(): Promise<ExitMessage | null> {
    for (;;) {
      const outcome = await this.#runConnection()
      this.#stop.signal.throwIfAborted()
      if ('exit' in outcome) return outcome.exit
      // The exit was received, but the sink has not processed all output.
      if (this.#output.isComplete) return this.#finished.promise
      this.#policy.recordDisconnect(outcome.disconnect.reason)
      await this.#policy.waitBeforeRetry(outcome.disconnect.retryAfter)
    }
  }

  async #runConnection(): Promise<Outcome> {
    const controller = new AbortController()
    const abort = () => controller.abort()
    this.#stop.signal.addEventListener('abort', abort)
    const timer = setTimeout(abort, this.#idleTimeoutMs)
    try {
      const result = await this.#options.connect(this.#output.startConnection(), controller.signal)
      clearTimeout(timer)
      if (result.ok) return await this.#readConnection(result.socket)
      // The previous connection was lost after the server had received `detach`.
      if (this.#input.isDetaching && result.error.code === 'invalid_request') return { exit: null }
      // Suspending a box terminates its commands and terminals.
      if (result.error.code === 'box_not_running') throw result.error
      return { disconnect: toDisconnect(result, !this.#wasConnected) }
    } catch (error) {
      if (controller.signal.aborted) return { disconnect: CONNECTION_LOST }
      if (!isConnectionError(error)) throw error
      return { disconnect: { reason: error.message, retryAfter: null } }
    } finally {
      this.#input.pause()
      clearTimeout(timer)
      this.#stop.signal.removeEventListener('abort', abort)
    }
  }

  /** Resolves when the connection is closed. */
  #readConnection(socket: WebSocket): Promise<Outcome> {
    const { promise, resolve, reject } = Promise.withResolvers<Outcome>()
    let disconnect = CONNECTION_LOST
    const connection = startConnection(socket, {
      idleTimeoutMs: this.#idleTimeoutMs,
      onMessage: (message) => {
        if (message.type === 'attached') return this.#receiveAttached(message, connection)
        const reason = this.#receive(message)
        if (reason === null) return
        disconnect = reason
        void connection.close()
      },
      onClose: (code) => {
        const isDetached = this.#input.isDetaching && this.#input.connection !== null && code === CLOSE_NORMAL
        resolve(isDetached ? { exit: null } : { disconnect })
      },
      onError: reject,
    })
    return promise
  }

  #receiveAttached(message: AttachedMessage, connection: Connection): void {
    if (this.#input.connection !== null) throw invalidDataError('the message attached twice')
    this.#output.push(message)
    if (!this.#input.resume(connection, message.stdinOffset)) this.#options.onStdinLost?.()
    this.#wasConnected = true
    this.#policy.recordConnect()
    this.#options.onAttached?.(message)
  }

  /** Returns why the connection is to be closed, else null. */
  #receive(message: Exclude<ServerMessage | OutputBytes, AttachedMessage>): Disconnect | null {
    if (message.type === 'error') return parseError(message)
    if (message.type === 'reconnect') return RECONNECT_REQUESTED
    if (this.#input.connection === null) throw invalidDataError('a message before the message attached')
    this.#policy.recordData()
    if (message.type === 'stdin') this.#input.acceptStdin(message.offset)
    else if (message.type === 'stdinClosed') this.#input.closeStdin()
    else if (message.type !== 'resized') this.#output.push(message)
    return null
  }
}

/** @throws CliError when a new connection cannot help */
function parseError({ code, message }: Extract<ServerMessage, { type: 'error' }>): Disconnect {
  const error = createApiError(code, message)
  if (error.exitCode !== EXIT.unreachable) throw error
  return { reason: error.message, retryAfter: null }
}
