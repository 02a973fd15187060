// Received output that waits for the sink: checks its offsets and the window, and passes each byte on once, in order.
import type { OutputBytes, ServerMessage } from '../../shared/api/attach.ts'
import type { Offsets } from '../../shared/api/processes.ts'
import { ATTACH_LIMITS, type OutputChannel } from '../../shared/attach-format.ts'
import { invalidDataError } from '../connection/server-data.ts'
import type { AttachedMessage, ExitMessage } from './messages.ts'

/** Receives the output. Each call waits for the promise of the previous one. */
export type OutputSink = {
  write(channel: OutputChannel, bytes: Buffer): Promise<void>
  /** The box has discarded `bytes` bytes at this position. */
  reportMissing(channel: OutputChannel, bytes: number): void
  /** Only for a terminal: clears it, and writes the bytes, which draw the whole screen. */
  drawScreen?(bytes: Buffer): Promise<void>
}

export type OutputQueueOptions = {
  /** null: with the current screen of a terminal. */
  start: Offsets | null
  sink: OutputSink
  /** The sink has processed the output up to these offsets. */
  onAck(offsets: Offsets): void
  /** The sink has processed all output. */
  onExit(exit: ExitMessage): void
  /** An error of the sink. */
  onError(error: unknown): void
}

export type OutputQueue = {
  /**
   * Discards the output that the sink has not received, and returns the offsets where a new connection continues: null
   * when it draws the screen first.
   */
  startConnection(): Offsets | null
  /** @throws CliError when offsets do not match, or the server exceeds the window */
  push(message: AttachedMessage | OutputMessage): void
  /** Whether all output and the exit have been received. */
  readonly isComplete: boolean
}

type Message<Type extends ServerMessage['type']> = Extract<ServerMessage, { type: Type }>
export type OutputMessage = OutputBytes | Message<'screen'> | Message<'skipped'> | ExitMessage

type Item =
  | OutputBytes
  | { type: 'screen'; bytes: Buffer; end: Offsets }
  | { type: 'skipped'; end: Offsets }
  | { type: 'exit'; exit: ExitMessage; end: Offsets }

/** Bytes that the sink processes before the next ack. */
const ACK_BYTES = 512 * 1024
/** Chunks are joined up to this size while the sink is busy. */
const JOINED_BYTES = 4096
/** Larger than the screen and scrollback of any terminal. */
const MAX_SCREEN_BYTES = 64 * 1024 * 1024

export function createOutputQueue({ start, sink, onAck, onExit, onError }: OutputQueueOptions): OutputQueue {
  let queue: Item[] = []
  let isProcessing = false
  let isComplete = false
  /** After the output that the sink has received. null: a screen must be drawn first. */
  let position = start
  /** After all output that has been received. */
  let received: Offsets = start ?? { stdout: 0, stderr: 0 }
  /** Bytes that have been received but not acknowledged, and the part of them that the sink has processed. */
  let unacknowledged = 0
  let processed = 0
  /** A screen that has not been received completely. */
  let screen: { chunks: Buffer[]; missing: number; end: Offsets } | null = null

  async function processQueue(): Promise<void> {
    if (isProcessing) return
    isProcessing = true
    try {
      for (let item = queue.shift(); item !== undefined; item = queue.shift()) await processItem(item)
    } catch (error) {
      onError(error)
    } finally {
      isProcessing = false
    }
  }

  async function processItem(item: Item): Promise<void> {
    if (item.type === 'output') {
      const { channel, bytes } = item
      if (position !== null) position = { ...position, [channel]: position[channel] + bytes.length }
      await sink.write(channel, bytes)
      processed += bytes.length
      if (processed >= ACK_BYTES) acknowledge()
      return
    }
    if (item.type !== 'screen') reportMissing(item.end)
    position = item.end
    if (item.type === 'screen') await sink.drawScreen?.(item.bytes)
    if (item.type === 'exit') onExit(item.exit)
    else acknowledge()
  }

  function acknowledge(): void {
    if (position === null) return
    unacknowledged -= processed
    processed = 0
    onAck(position)
  }

  function reportMissing(end: Offsets): void {
    if (position === null) return
    for (const channel of ['stdout', 'stderr'] as const)
      if (end[channel] > position[channel]) sink.reportMissing(channel, end[channel] - position[channel])
  }

  function enqueue(item: Item): void {
    const last = queue.at(-1)
    if (
      item.type === 'output' &&
      last?.type === 'output' &&
      last.channel === item.channel &&
      last.bytes.length + item.bytes.length <= JOINED_BYTES
    )
      last.bytes = Buffer.concat([last.bytes, item.bytes])
    else queue.push(item)
    void processQueue()
  }

  function receiveOutput({ channel, bytes }: OutputBytes): void {
    let rest = bytes
    if (screen !== null) {
      if (channel !== 'stdout') throw invalidDataError('output inside a screen')
      const part = rest.subarray(0, screen.missing)
      rest = rest.subarray(part.length)
      screen.chunks.push(part)
      screen.missing -= part.length
      finishScreen()
    }
    if (rest.length === 0) return
    unacknowledged += rest.length
    if (unacknowledged > ATTACH_LIMITS.outputWindowBytes)
      throw invalidDataError('more output than was acknowledged')
    received = { ...received, [channel]: received[channel] + rest.length }
    enqueue({ type: 'output', channel, bytes: rest })
  }

  function finishScreen(): void {
    if (screen === null || screen.missing > 0) return
    const { chunks, end } = screen
    screen = null
    enqueue({ type: 'screen', bytes: Buffer.concat(chunks), end })
  }

  /** @throws CliError when the offsets decrease */
  function advance({ stdoutOffset, stderrOffset }: { stdoutOffset: number; stderrOffset: number }): Offsets {
    if (stdoutOffset < received.stdout || stderrOffset < received.stderr)
      throw invalidDataError('an offset that is smaller than a previous one')
    received = { stdout: stdoutOffset, stderr: stderrOffset }
    return received
  }

  function receiveAttached(message: AttachedMessage): void {
    const isFirst = position === null
    const requested = received
    const end = advance(message)
    if (isFirst || (end.stdout === requested.stdout && end.stderr === requested.stderr)) return
    if (sink.drawScreen === undefined) enqueue({ type: 'skipped', end })
    // The server does not have the output from the requested offset, and sends a screen.
    else position = null
  }

  return {
    startConnection() {
      queue = []
      screen = null
      received = position ?? { stdout: 0, stderr: 0 }
      unacknowledged = 0
      processed = 0
      return position
    },
    push(message) {
      if (isComplete) return
      if (message.type === 'attached') receiveAttached(message)
      else if (message.type === 'output') receiveOutput(message)
      else if (message.type === 'screen') {
        if (sink.drawScreen === undefined || message.bytes > MAX_SCREEN_BYTES)
          throw invalidDataError('an unexpected screen')
        const end = advance(message)
        // The screen includes the output that the sink has not received.
        queue = []
        unacknowledged = processed
        screen = { chunks: [], missing: message.bytes, end }
        finishScreen()
      } else {
        const end = advance(message)
        isComplete = message.type === 'exit'
        enqueue(message.type === 'exit' ? { type: 'exit', exit: message, end } : { type: 'skipped', end })
      }
    },
    get isComplete() {
      return isComplete
    },
  }
}
