// One attached client of a terminal session: sends the screen and the output, with a window of unacknowledged bytes.
import type { ClientMessage, StdinBytes } from '../../shared/api/attach.ts'
import { ATTACH_LIMITS } from '../../shared/attach-format.ts'
import { ApiError } from '../../shared/errors.ts'
import type { AttachSocket } from '../attach/attach-socket.ts'
import type { Exit } from '../exec/native-spawn.ts'
import type { ClientInput } from './input-queue.ts'
import type { OutputRing } from './output-ring.ts'
import type { Snapshot } from './screen.ts'

/**
 * Unacknowledged bytes of output. Smaller than the protocol allows: what the client has not displayed when a person presses
 * Ctrl-C is displayed afterwards.
 */
export const OUTPUT_WINDOW_BYTES = ATTACH_LIMITS.outputWindowBytes / 4
/** How long a client may take to confirm the exit. */
const EXIT_TIMEOUT_MS = 10_000

export type AttachOptions = {
  /** Identifies a client that reconnects. */
  client?: string | undefined
  /** Continue the output from here. Absent, or no longer retained: send the screen. */
  offset?: number | undefined
  isNew: boolean
  size?: { cols: number; rows: number } | undefined
}

export type TerminalClient = {
  /** Offset up to which the client has processed the output. */
  acknowledged(): number
  /** Call when there is output, a new size or the exit. */
  onChange(): void
  /** Closes the connection because the client has another one. */
  replace(): void
}

/** What a client uses of its session. */
export type ClientSession = Pick<OutputRing, 'start' | 'end' | 'read'> & {
  name: string
  size(): { cols: number; rows: number }
  /** null while the program runs. Set after all output. */
  exit(): Exit | null
  snapshot(): Snapshot
  stdin: ClientInput
  resize(cols: number, rows: number): void
  onInput(): void
  onAcknowledge(): void
}

export function createClient(
  socket: AttachSocket,
  { offset, isNew }: AttachOptions,
  session: ClientSession,
): TerminalClient {
  const { stdin } = session
  const canContinue = offset !== undefined && offset >= session.start() && offset <= session.end()
  const firstScreen = canContinue ? null : session.snapshot()
  let cursor = firstScreen?.offset ?? offset ?? 0
  let acknowledged = cursor
  let sentSize = { cols: 0, rows: 0 }
  let writtenInput = stdin.accepted()
  let confirmedInput = writtenInput
  let wake: () => void = () => undefined
  let isClosing = false

  const close = (error?: ApiError) => {
    if (isClosing) return
    isClosing = true
    socket.close(error && { type: 'error', code: error.code, message: error.message })
    wake()
  }
  const reject = (problem: string) => close(new ApiError('invalid_request', problem))

  function acknowledge(offset: number): void {
    if (offset <= cursor) {
      acknowledged = Math.max(acknowledged, offset)
      session.onAcknowledge()
      wake()
    } else reject('The client acknowledged output that was not sent.')
  }

  function queueInput(bytes: Buffer): void {
    session.onInput()
    const isQueued = stdin.push(bytes, () => {
      writtenInput = stdin.accepted()
      wake()
    })
    if (!isQueued)
      reject(
        'The client sent more stdin than the program has read. Wait until it is accepted, then send more.',
      )
  }

  function onMessage(message: ClientMessage | StdinBytes): void {
    if (isClosing) return
    if (message.type === 'ack') acknowledge(message.stdoutOffset)
    else if (message.type === 'stdinBytes') queueInput(message.bytes)
    else if (message.type === 'resize') session.resize(message.cols, message.rows)
    // A terminal has no end of input: programs read Ctrl-D.
    else if (message.type !== 'stdinEnd') close()
  }

  async function sendScreen({ bytes, offset, cols, rows }: Snapshot): Promise<void> {
    cursor = offset
    acknowledged = Math.max(acknowledged, offset)
    sentSize = { cols, rows }
    void socket.send({
      type: 'screen',
      bytes: bytes.length,
      stdoutOffset: offset,
      stderrOffset: 0,
      cols,
      rows,
    })
    await socket.sendOutput('stdout', bytes)
  }

  /** Sends what is due. Returns false when nothing is due. */
  async function sendNext(): Promise<boolean> {
    const size = session.size()
    if (cursor < session.start()) {
      await sendScreen(session.snapshot())
      return true
    }
    if (size.cols !== sentSize.cols || size.rows !== sentSize.rows) {
      sentSize = { ...size }
      await socket.send({ type: 'resized', ...size })
      return true
    }
    const bytes = session.read(cursor, ATTACH_LIMITS.chunkBytes)
    if (bytes.length === 0) return false
    cursor += bytes.length
    await socket.sendOutput('stdout', bytes)
    return true
  }

  async function serve(): Promise<void> {
    void socket.send({
      type: 'attached',
      session: session.name,
      isNew,
      stdinOffset: stdin.accepted(),
      stdoutOffset: cursor,
      stderrOffset: 0,
    })
    if (firstScreen !== null) await sendScreen(firstScreen)
    while (!isClosing && !socket.signal.aborted) {
      const changed = Promise.withResolvers<void>()
      wake = changed.resolve
      const exit = session.exit()
      // Waits for the socket: a client may send many short messages, and read nothing.
      if (confirmedInput !== writtenInput) {
        confirmedInput = writtenInput
        await socket.send({ type: 'stdin', offset: confirmedInput })
      }
      if (cursor - acknowledged < OUTPUT_WINDOW_BYTES && (await sendNext())) continue
      if (exit !== null && cursor === session.end()) {
        const status = exit.signal === null ? 'exited' : 'killed'
        void socket.send({
          type: 'exit',
          status,
          ...exit,
          timedOut: false,
          stdoutOffset: cursor,
          stderrOffset: 0,
        })
        setTimeout(close, EXIT_TIMEOUT_MS).unref()
        return
      }
      await changed.promise
    }
  }

  socket.onMessage(onMessage)
  socket.signal.addEventListener('abort', () => wake(), { once: true })
  void serve()
  return {
    acknowledged: () => acknowledged,
    onChange: () => wake(),
    replace: () => reject('Another connection of this client replaced this one.'),
  }
}
