// An attached command or terminal: output and stdin over connections that resume where the previous one was lost.
import type { WebSocket } from 'ws'
import type { ClientMessage, OutputBytes, ServerMessage } from '../../shared/api/attach.ts'
import type { Offsets } from '../../shared/api/processes.ts'
import { ATTACH_LIMITS } from '../../shared/attach-format.ts'
import { createApiError } from '../connection/api-errors.ts'
import type { ConnectResult } from '../connection/api-requests.ts'
import { invalidDataError } from '../connection/server-data.ts'
import { CONNECTION_LOST, type Disconnect, isConnectionError, toDisconnect } from '../follow/disconnect.ts'
import { createReconnectPolicy, type ReconnectOptions } from '../follow/reconnect-policy.ts'
import { EXIT } from '../output/exit-codes.ts'
import { type Connection, startConnection } from './connection.ts'
import type { AttachedMessage, ExitMessage } from './messages.ts'
import { createOutputQueue, type OutputSink } from './output-queue.ts'
import { createStdinWindow } from './stdin-window.ts'

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

export type Attachment = {
  /**
   * Resolves with the exit when the sink has processed all output, or with null when the client is detached. Rejects with
   * the errors of the sink, with the signal's reason, and with a CliError when a new connection cannot help.
   */
  result: Promise<ExitMessage | null>
  /** Resolves when more bytes can be written: with false when no further bytes are needed. */
  writeStdin(bytes: Buffer): Promise<boolean>
  endStdin(): void
  detach(): void
  resize(size: TerminalSize): void
  /** Replaces the current connection by a new one. */
  reconnect(): void
}

export type TerminalSize = { cols: number; rows: number }

const IDLE_TIMEOUT_MS = 45_000
/** The code with which the server closes a connection after `detach` and `exitReceived`. */
const CLOSE_NORMAL = 1000

type Outcome = { disconnect: Disconnect } | { exit: ExitMessage | null }

export function attach(options: AttachmentOptions): Attachment {
  const { signal, idleTimeoutMs = IDLE_TIMEOUT_MS } = options
  const stopController = new AbortController()
  const stopped = stopController.signal
  const policy = createReconnectPolicy({ ...options, signal: stopped })
  const finished = Promise.withResolvers<ExitMessage>()
  /** null until the server has sent `attached`. */
  let connection: Connection | null = null
  let isFirst = true
  let isStdinEnded = false
  let isDetaching = false
  let pendingSize: TerminalSize | null = null

  const send = (message: ClientMessage) => connection?.send(message)
  const stdin = createStdinWindow((bytes) => connection?.sendStdin(bytes))
  const output = createOutputQueue({
    start: options.start,
    sink: options.sink,
    onAck: ({ stdout, stderr }) => send({ type: 'ack', stdoutOffset: stdout, stderrOffset: stderr }),
    onExit: finished.resolve,
    onError: finished.reject,
  })

  function receiveAttached(message: AttachedMessage, opened: Connection): void {
    if (connection !== null) throw invalidDataError('the message attached twice')
    output.push(message)
    if (!stdin.resume(message.stdinOffset)) options.onStdinLost?.()
    connection = opened
    isFirst = false
    policy.recordConnect()
    for (const bytes of stdin.getUnaccepted()) opened.sendStdin(bytes)
    if (isStdinEnded) opened.send({ type: 'stdinEnd' })
    if (pendingSize !== null) opened.send({ type: 'resize', ...pendingSize })
    pendingSize = null
    if (isDetaching) opened.send({ type: 'detach' })
    options.onAttached?.(message)
  }

  /** Returns why the connection is to be closed, else null. */
  function receive(message: Exclude<ServerMessage | OutputBytes, AttachedMessage>): Disconnect | null {
    if (message.type === 'error') return parseError(message)
    if (message.type === 'reconnect') return RECONNECT_REQUESTED
    if (connection === null) throw invalidDataError('a message before the message attached')
    policy.recordData()
    if (message.type === 'stdin') stdin.accept(message.offset)
    else if (message.type === 'stdinClosed') stdin.close()
    else if (message.type !== 'resized') output.push(message)
    return null
  }

  /** Resolves when the connection is closed. */
  const readConnection = (socket: WebSocket): Promise<Outcome> =>
    new Promise((resolve, reject) => {
      let disconnect = CONNECTION_LOST
      const opened = startConnection(socket, {
        idleTimeoutMs,
        onMessage(message) {
          if (message.type === 'attached') return receiveAttached(message, opened)
          const reason = receive(message)
          if (reason === null) return
          disconnect = reason
          void opened.close()
        },
        onClose(code) {
          const isDetached = isDetaching && connection !== null && code === CLOSE_NORMAL
          resolve(isDetached ? { exit: null } : { disconnect })
        },
        onError: reject,
      })
    })

  async function runConnection(): Promise<Outcome> {
    const controller = new AbortController()
    const abort = () => controller.abort()
    stopped.addEventListener('abort', abort)
    const timer = setTimeout(abort, idleTimeoutMs)
    try {
      const result = await options.connect(output.startConnection(), controller.signal)
      clearTimeout(timer)
      if (result.ok) return await readConnection(result.socket)
      // The previous connection was lost after the server had received `detach`.
      if (isDetaching && result.error.code === 'invalid_request') return { exit: null }
      // Suspending a box terminates its commands and terminals.
      if (result.error.code === 'box_not_running') throw result.error
      return { disconnect: toDisconnect(result, isFirst) }
    } catch (error) {
      if (controller.signal.aborted) return { disconnect: CONNECTION_LOST }
      if (!isConnectionError(error)) throw error
      return { disconnect: { reason: error.message, retryAfter: null } }
    } finally {
      connection = null
      clearTimeout(timer)
      stopped.removeEventListener('abort', abort)
    }
  }

  async function runConnections(): Promise<ExitMessage | null> {
    for (;;) {
      const outcome = await runConnection()
      stopped.throwIfAborted()
      if ('exit' in outcome) return outcome.exit
      // The exit was received, but the sink has not processed all output.
      if (output.isComplete) return finished.promise
      policy.recordDisconnect(outcome.disconnect.reason)
      await policy.waitBeforeRetry(outcome.disconnect.retryAfter)
    }
  }

  async function run(): Promise<ExitMessage | null> {
    const onAbort = () => finished.reject(signal.reason)
    signal.addEventListener('abort', onAbort)
    if (signal.aborted) onAbort()
    try {
      const exit = await Promise.race([finished.promise, runConnections()])
      if (exit !== null) send({ type: 'exitReceived' })
      await connection?.close()
      return exit
    } finally {
      signal.removeEventListener('abort', onAbort)
      stopController.abort()
      stdin.close()
      policy.close()
    }
  }

  return {
    result: run(),
    async writeStdin(bytes) {
      for (let start = 0; start < bytes.length; start += ATTACH_LIMITS.chunkBytes)
        if (!(await stdin.append(bytes.subarray(start, start + ATTACH_LIMITS.chunkBytes)))) return false
      return !stdin.isClosed
    },
    endStdin() {
      isStdinEnded = true
      send({ type: 'stdinEnd' })
    },
    detach() {
      isDetaching = true
      send({ type: 'detach' })
    },
    resize(size) {
      if (connection === null) pendingSize = size
      else send({ type: 'resize', ...size })
    },
    reconnect: () => void connection?.close(),
  }
}

const RECONNECT_REQUESTED: Disconnect = { reason: 'The coordinator requested a reconnect.', retryAfter: null }

/** @throws CliError when a new connection cannot help */
function parseError({ code, message }: Extract<ServerMessage, { type: 'error' }>): Disconnect {
  const error = createApiError(code, message)
  if (error.exitCode !== EXIT.unreachable) throw error
  return { reason: error.message, retryAfter: null }
}
