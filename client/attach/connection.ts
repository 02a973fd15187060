// One connection of an attachment: typed messages over a WebSocket, and detection of a dead peer.
import type { AttachClientMessage } from '../generated/types.ts'
import { BoxwoodError, createInvalidError, toLostError } from '../http/errors.ts'
import type { Socket, SocketHandlers } from '../http/socket.ts'
import { createDeferred } from './deferred.ts'
import { type OutputBytes, parseServerMessage, type ServerMessage } from './messages.ts'

/** How a connection has ended. */
export type Outcome = {
  error: BoxwoodError
  /** undefined: the error decides. */
  canRetry?: boolean
  /** The server has refused the connection. */
  isRefused?: boolean
  /** That of the WebSocket, when the server has closed it. */
  code?: number
}

export type Connection = {
  send(data: AttachClientMessage | string | Uint8Array<ArrayBuffer>): void
  /** Sends what was passed to `send` before, then closes. Resolves when the connection is closed. */
  close(): Promise<void>
  /** Ends the connection at once with an outcome, and closes it in the background. null: the client replaces it. */
  drop(outcome: Outcome | null): void
  /** Closes the connection without waiting for the server. */
  abort(): void
  /** Rejects with an error of `onMessage`. */
  readonly outcome: Promise<Outcome | null>
}

export type ConnectionOptions = {
  connect(handlers: SocketHandlers, signal: AbortSignal): Promise<Socket>
  /** Requests why the connection was refused, where the runtime hides it. Rejects with BoxwoodError. */
  check?: ((signal: AbortSignal) => Promise<unknown>) | undefined
  /** An error that it throws ends the connection. */
  onMessage(message: ServerMessage | OutputBytes): void
  /** A connection on which nothing arrives for this long is lost. The server sends a ping every 15 seconds. */
  idleTimeoutMs: number
}

/** How long the server may take to complete the closing handshake. */
const CLOSE_TIMEOUT_MS = 1000

export function openConnection({ connect, check, onMessage, idleTimeoutMs }: ConnectionOptions): Connection {
  const controller = new AbortController()
  const { signal } = controller
  let socket: Socket | null = null
  let isOver = false
  const { promise: outcome, resolve, reject } = createDeferred<Outcome | null>()
  const closed = createDeferred<void>()

  function finish(run: () => void): void {
    if (isOver) return
    isOver = true
    idle.stop()
    run()
  }
  const fail = (error: unknown) =>
    finish(() => {
      controller.abort()
      reject(error)
    })
  const lose = () =>
    finish(() => {
      controller.abort()
      resolve({ error: toLostError() })
    })
  async function refuse(error: unknown): Promise<void> {
    if (isOver || !(error instanceof BoxwoodError)) throw error
    const reason = error.status === 0 ? await explain(error) : error
    finish(() => resolve({ error: reason, isRefused: true }))
  }
  const explain = async (error: BoxwoodError): Promise<BoxwoodError> =>
    (await check?.(signal).then(
      () => null,
      (reason: unknown) => (reason instanceof BoxwoodError ? reason : null),
    )) ?? error
  const idle = startIdleTimer(idleTimeoutMs, () => {
    if (socket === null || socket.reportsPings || check === undefined) return lose()
    // The connection may be idle: whether the coordinator responds is the next best sign of life.
    check(signal).then(idle.restart, (error: unknown) =>
      error instanceof BoxwoodError && error.status === 0 ? lose() : idle.restart(),
    )
  })

  connect(
    {
      onOpen(opened) {
        socket = opened
        idle.restart()
      },
      onPing: () => idle.restart(),
      onMessage(data) {
        idle.restart()
        if (isOver) return
        try {
          const message = parseServerMessage(data)
          if (message !== null) onMessage(message)
        } catch (error) {
          fail(error)
        }
      },
      onClose(code, violation) {
        closed.resolve()
        if (violation !== undefined) fail(createInvalidError(`an invalid WebSocket message (${violation})`))
        else finish(() => resolve({ error: toLostError(), code }))
      },
    },
    signal,
  )
    .catch(refuse)
    .catch(fail)

  function close(): Promise<void> {
    if (socket === null) {
      controller.abort()
      return Promise.resolve()
    }
    socket.close()
    const timer = setTimeout(() => {
      controller.abort()
      closed.resolve()
    }, CLOSE_TIMEOUT_MS)
    ;(timer as { unref?(): void }).unref?.()
    return closed.promise
  }
  return {
    send(data) {
      if (isOver) return
      socket?.send(typeof data === 'string' || data instanceof Uint8Array ? data : JSON.stringify(data))
    },
    close,
    drop: (result) =>
      finish(() => {
        void close()
        resolve(result)
      }),
    abort: lose,
    outcome,
  }
}

/** Calls `onIdle` when `restart` is not called for this long. */
function startIdleTimer(ms: number, onIdle: () => void) {
  let timer: ReturnType<typeof setTimeout> | undefined
  let isStopped = ms === Number.POSITIVE_INFINITY
  function restart(): void {
    clearTimeout(timer)
    if (!isStopped) timer = setTimeout(onIdle, ms)
  }
  restart()
  return {
    restart,
    stop() {
      isStopped = true
      clearTimeout(timer)
    },
  }
}
