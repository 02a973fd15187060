// Records the positions of the follower from which a reader or a restarted agent can start, in memory and in files.
import type { Logger } from 'pino'
import type { OutputLog } from '../../exec/detached/types.ts'
import { appendCheckpoints, type Checkpoint, replaceCheckpoints, writePosition } from './checkpoints.ts'
import type { LogPosition } from './event-decoder.ts'
import type { OutputTimeLookup } from './output-time-lookup.ts'

/** Distance in bytes between the positions that are kept in memory for readers at the end of the log. */
const RECENT_BYTES = 4 * 1024
/** The number of these positions. */
const RECENT_COUNT = 64
/** Checkpoints of discarded output are removed after this many new ones. */
const COMPACT_COUNT = 128

export type CheckpointRecorderOptions = {
  /** The directory of the run, which has the files. */
  runDir: string
  output: Pick<OutputLog, 'read'>
  times: OutputTimeLookup
  /** The saved checkpoints, in ascending order. */
  checkpoints: readonly Checkpoint[]
  /** Time of the output at the first position, in milliseconds since the epoch. */
  startAt: number
  /** Bytes between two checkpoints, at least. */
  checkpointBytes: number
  log: Logger
}

export class CheckpointRecorder {
  readonly #options: CheckpointRecorderOptions
  #checkpoints: Checkpoint[]
  /** The newest positions, at smaller distances than the checkpoints. */
  readonly #recent: Checkpoint[] = []
  #unsaved: Checkpoint[] = []
  /** The number of checkpoints since the last removal of those of discarded output. */
  #added = 0
  /** The time of the last output whose time is known. */
  #lastAt: number
  #hasFailedWrite = false

  constructor(options: CheckpointRecorderOptions) {
    this.#options = options
    this.#checkpoints = [...options.checkpoints]
    this.#lastAt = options.startAt
  }

  /** @param readOffset the end of the output that has been read */
  record(position: LogPosition, readOffset: number): void {
    if (position.notice !== null || isDistant(position, this.#checkpoints, this.#options.checkpointBytes)) {
      const checkpoint = this.#toCheckpoint(position, readOffset)
      this.#checkpoints.push(checkpoint)
      this.#unsaved.push(checkpoint)
      this.#recent.push(checkpoint)
    } else if (isDistant(position, this.#recent, RECENT_BYTES)) {
      this.#recent.push(this.#toCheckpoint(position, readOffset))
    }
    if (this.#recent.length > RECENT_COUNT) this.#recent.shift()
  }

  /**
   * Logs errors: without the files, only a restarted agent whose log has lost its head is affected.
   * @param position of the follower; null: its number is not exact, and the file is left unchanged, because a restarted
   *   agent takes the number in the file for exact
   */
  async save(position: LogPosition | null): Promise<void> {
    const { runDir, log } = this.#options
    try {
      await this.#compact()
      if (this.#unsaved.length > 0) appendCheckpoints(runDir, this.#unsaved)
      this.#unsaved = []
      if (position !== null) writePosition(runDir, { ...position, at: this.#lastAt })
      this.#hasFailedWrite = false
    } catch (err) {
      if (!this.#hasFailedWrite) log.error({ err, runDir }, 'failed to write the checkpoints of a run')
      this.#hasFailedWrite = true
    }
  }

  /** Where readers can start, in ascending order of `offset` and `seq`. */
  getStarts(): Checkpoint[] {
    const recentStart = this.#recent[0]?.offset ?? Number.POSITIVE_INFINITY
    return [...this.#checkpoints.filter(({ offset }) => offset < recentStart), ...this.#recent]
  }

  #toCheckpoint(position: LogPosition, readOffset: number): Checkpoint {
    this.#lastAt = this.#options.times.find(position.offset, readOffset) ?? this.#lastAt
    return { ...position, at: this.#lastAt }
  }

  async #compact(): Promise<void> {
    const { runDir, output } = this.#options
    this.#added += this.#unsaved.length
    if (this.#added < COMPACT_COUNT) return
    this.#added = 0
    const retained = (await output.read(0, 1)).offset
    this.#checkpoints = this.#checkpoints.filter(({ offset }) => offset >= retained)
    replaceCheckpoints(runDir, this.#checkpoints)
    this.#unsaved = []
  }
}

const isDistant = ({ offset }: LogPosition, earlier: readonly Checkpoint[], bytes: number): boolean =>
  offset - (earlier.at(-1)?.offset ?? 0) >= bytes
