// Reads the log of a run in progress once, from its start to its end: numbers the events and writes the checkpoints.
// Readers never number events beyond the follower. Work per turn of the event loop and memory are bounded.
import { setImmediate as yieldToEventLoop } from 'node:timers/promises'
import type { Logger } from 'pino'
import type { DetachedProcess, OutputLog } from '../../exec/detached/types.ts'
import { createOutputWatcher, type OutputWatcher } from '../../exec/output-watcher.ts'
import type { Provider } from '../providers/types.ts'
import { CheckpointRecorder } from './checkpoint-recorder.ts'
import type { Checkpoint } from './checkpoints.ts'
import { createEventDecoder, type DecodedLine, type EventDecoder, type LogPosition } from './event-decoder.ts'
import { createOutputTimeLookup, type OutputTimeLookup } from './output-time-lookup.ts'

/** Bytes that the follower decodes per turn of the event loop. */
const CHUNK_BYTES = 64 * 1024
/** The log is read again after this time, in case inotify missed a change. */
const REREAD_MS = 15_000

export type FollowerOptions = {
  detachedProcess: DetachedProcess
  provider: Provider
  /** The directory of the run, which has the checkpoints. */
  runDir: string
  start: FollowerStart
  /** Bytes between two checkpoints, at least. */
  checkpointBytes: number
  log: Logger
  /** Called at the start, and after events were decoded. */
  onProgress(): void
}

export type FollowerStart = {
  position: Checkpoint
  /** In ascending order. */
  checkpoints: Checkpoint[]
  /**
   * The offset from which no event has been published; 0 when none has been published after the position. If output before
   * this offset is discarded, the numbers of its events are unknown, and the numbering continues at a number that cannot
   * have been used.
   */
  exactFrom: number
}

export class LogFollower {
  readonly times: OutputTimeLookup
  /** Resolves with true when the process has exited and all its output is decoded, with false after close(). */
  readonly finished: Promise<boolean>
  readonly #options: FollowerOptions
  readonly #output: OutputLog
  readonly #watcher: OutputWatcher
  readonly #recorder: CheckpointRecorder
  #decoder: EventDecoder
  #published: LogPosition
  #readOffset: number
  #reports = 0
  #closed = false

  constructor(options: FollowerOptions) {
    const { detachedProcess, provider, runDir, start, checkpointBytes, log } = options
    this.#options = options
    this.#output = detachedProcess.logs.stdout
    this.#watcher = createOutputWatcher(detachedProcess, ['stdout'])
    this.times = createOutputTimeLookup(this.#output)
    this.#recorder = new CheckpointRecorder({
      runDir,
      output: this.#output,
      times: this.times,
      checkpoints: start.checkpoints,
      startAt: start.position.at,
      checkpointBytes,
      log,
    })
    this.#decoder = createEventDecoder(provider, start.position)
    this.#published = start.position
    this.#readOffset = start.position.offset
    this.finished = this.#follow().finally(() => this.#watcher.close())
  }

  /** The position after the last published event. */
  get position(): LogPosition {
    return this.#published
  }

  /** The number of lines that the coding agent has written, as far as this follower has read them. */
  get reports(): number {
    return this.#reports
  }

  /** Where readers can start, in ascending order of `offset` and `seq`. */
  getStarts(): Checkpoint[] {
    return this.#recorder.getStarts()
  }

  close(): void {
    this.#closed = true
    this.#watcher.close()
  }

  async #follow(): Promise<boolean> {
    const { detachedProcess } = this.#options
    // For a new run, the saved position also proves that no event was published before.
    await this.#publish()
    let end = Number.POSITIVE_INFINITY
    while (!this.#closed) {
      // Read the exit before the log: the log of an exited process is complete. Under the shell runner, background
      // processes may append to it.
      const { exit } = detachedProcess
      if (exit !== null && end === Number.POSITIVE_INFINITY) end = await this.#output.size()
      if (this.#readOffset < end && (await this.#decodeNext(end))) continue
      if (exit !== null) break
      await this.#watcher.waitForChange(REREAD_MS)
    }
    if (this.#closed) return false
    this.#record(this.#decoder.end())
    await this.#publish()
    return true
  }

  /** @param end offset after the last byte of the output; Infinity while it is unknown */
  async #decodeNext(end: number): Promise<boolean> {
    const length = Math.min(CHUNK_BYTES, end - this.#readOffset)
    const { offset, bytes } = await this.#output.read(this.#readOffset, length)
    if (bytes.length === 0) return false
    if (offset > this.#readOffset && !this.#isExact()) {
      // An event has at least one byte: the number of events before the offset is at most the offset.
      const { position } = this.#decoder
      const seq = Math.max(position.seq, offset)
      this.#decoder = createEventDecoder(this.#options.provider, { ...position, seq })
    }
    this.#readOffset = offset + bytes.length
    this.#record(this.#decoder.push(offset, bytes))
    await this.#publish()
    await yieldToEventLoop()
    return true
  }

  #record(lines: Iterable<DecodedLine>): void {
    for (const { before, isReport } of lines) {
      this.#recorder.record(before, this.#readOffset)
      if (isReport) this.#reports += 1
    }
  }

  async #publish(): Promise<void> {
    const { position } = this.#decoder
    await this.#recorder.save(this.#isExact() ? position : null)
    this.#published = position
    if (!this.#closed) this.#options.onProgress()
  }

  /** Whether the numbers of later events are free: no earlier agent has published an event after the output read so far. */
  #isExact(): boolean {
    return this.#readOffset >= this.#options.start.exactFrom
  }
}

export const followLog = (options: FollowerOptions): LogFollower => new LogFollower(options)

/** Finds where to continue after a restart of the agent. @param saved.position undefined when missing or damaged */
export async function findStart(
  output: OutputLog,
  saved: { checkpoints: Checkpoint[]; position: Checkpoint | undefined },
  origin: Checkpoint,
): Promise<FollowerStart> {
  const size = await output.size()
  const { position } = saved
  const checkpoints: Checkpoint[] = []
  for (const checkpoint of saved.checkpoints)
    if (await isLineStart(output, checkpoint, size)) checkpoints.push(checkpoint)
  if (position !== undefined && (await isLineStart(output, position, size)))
    return {
      position,
      exactFrom: 0,
      checkpoints: checkpoints.filter(({ seq, offset }) => seq <= position.seq && offset <= position.offset),
    }
  return { position: checkpoints.at(-1) ?? origin, exactFrom: size, checkpoints }
}

const NEWLINE = 0x0a

/** Whether a line starts at the position, as far as the log still shows it. */
async function isLineStart(output: OutputLog, { offset }: Checkpoint, size: number): Promise<boolean> {
  if (offset > size) return false
  if (offset === 0 || offset === size) return true
  const before = await output.read(offset - 1, 1)
  return before.offset !== offset - 1 || before.bytes[0] === NEWLINE
}
