// A terminal session as a page uses it: the attachment of the client, with a state that the page shows.
import { attach } from '../../client/attach/attachment.ts'
import type { TerminalSize } from '../../client/attach/format.ts'
import type { ExitMessage } from '../../client/attach/messages.ts'
import type { OutputSink } from '../../client/attach/sink-writer.ts'
import type { BoxwoodError } from '../../client/http/errors.ts'
import type { Socket, SocketHandlers } from '../../client/http/socket.ts'
import { toBoxwoodError } from './errors.ts'

export type TerminalState =
  | { type: 'connecting' | 'connected' | 'detached' }
  /** The next attempt follows by itself. */
  | { type: 'lost'; error: BoxwoodError }
  | { type: 'exited'; exit: ExitMessage }
  /** No new connection can help. */
  | { type: 'failed'; error: BoxwoodError }

export type TerminalOptions = {
  session: string
  /** The random id of this client: a client that connects again with its id continues its input. */
  client: string
  /** That of the view; null: the view is not laid out. */
  size: TerminalSize | null
  connect(query: object, handlers: SocketHandlers, signal: AbortSignal): Promise<Socket>
  /** Why a connection was refused, which a browser does not report: rejects with BoxwoodError. Resolves when the session exists. */
  checkSession(session: string): Promise<void>
  sink: OutputSink
  onState(state: TerminalState): void
}

export type TerminalConnection = ReturnType<typeof openTerminal>

export function openTerminal({
  session,
  client,
  connect,
  checkSession,
  sink,
  onState,
  ...options
}: TerminalOptions) {
  const controller = new AbortController()
  let { size } = options
  let isPaused = false
  let hasFailed = false
  onState({ type: 'connecting' })
  const attachment = attach({
    connect: (position, handlers, signal) =>
      connect({ session, client, create: 'never', offset: position?.stdout, ...size }, handlers, signal),
    check: () => checkSession(session),
    start: null,
    sink,
    signal: controller.signal,
    // The page reconnects when the feed was lost.
    idleTimeoutMs: Number.POSITIVE_INFINITY,
    onConnection: (error) => onState(error === null ? { type: 'connected' } : { type: 'lost', error }),
    onFailure(error) {
      hasFailed = true
      onState({ type: 'failed', error })
      return true
    },
  })
  attachment.result.then(
    (exit) => exit !== null && onState({ type: 'exited', exit }),
    (error) => controller.signal.aborted || onState({ type: 'failed', error: toBoxwoodError(error) }),
  )

  function resume(): void {
    if (isPaused || hasFailed) return
    onState({ type: 'connecting' })
    attachment.resume()
    attachment.reconnect()
  }
  return {
    write: (text: string) => void attachment.writeStdin(new TextEncoder().encode(text)),
    resize(next: TerminalSize): void {
      size = next
      attachment.resize(next)
    },
    /** Replaces a connection that may be lost without a notice, and does not wait for the next attempt. */
    reconnect: resume,
    /** A page that displays no output would block the program, whose output waits for its readers. */
    pause(): void {
      isPaused = true
      attachment.pause()
    },
    resume(): void {
      if (!isPaused) return
      isPaused = false
      resume()
    },
    /** Connects again after a failure, such as that of a box that was suspended. */
    reopen(): void {
      hasFailed = false
      resume()
    },
    /** The session stays. */
    detach(): void {
      attachment.detach()
      controller.abort()
      onState({ type: 'detached' })
    },
  }
}
