// Reads the log of a run in progress once, from its start to its end: numbers the events and writes the checkpoints.
// Readers never number events beyond the follower. Work per turn of the event loop and memory are bounded.
import { setImmediate as yieldToEventLoop } from 'node:timers/promises'
import type { FastifyBaseLogger } from 'fastify'
import type { DetachedProcess, OutputLog } from '../../exec/detached/types.ts'
import { createOutputWatcher } from '../../exec/output-watcher.ts'
import type { Provider } from '../providers/types.ts'
import { appendCheckpoints, type Checkpoint, replaceCheckpoints, writePosition } from './checkpoints.ts'
import { createEventDecoder, type DecodedLine, type LogPosition } from './event-decoder.ts'
import { createOutputTimeLookup, type OutputTimeLookup } from './output-time-lookup.ts'

/** Bytes per turn of the event loop. */
const CHUNK_BYTES = 64 * 1024
/** The log is read again after this time, in case inotify missed a change. */
const REREAD_MS = 15_000
/** Positions in memory for readers at the end of the log: about this far apart, and as many. */
const RECENT_BYTES = 4 * 1024
const RECENT_COUNT = 64
/** Checkpoints of discarded output are removed after this many new ones. */
const COMPACT_COUNT = 128

export type FollowerOptions = {
  detachedProcess: DetachedProcess
  provider: Provider
  /** Of the run: has the checkpoints. */
  runDir: string
  start: FollowerStart
  /** Bytes between two checkpoints, at least. */
  checkpointBytes: number
  log: FastifyBaseLogger
  /** Called after events were decoded. */
  onProgress(): void
}

export type FollowerStart = {
  position: Checkpoint
  /** In ascending order. */
  checkpoints: Checkpoint[]
  /**
   * No event after this offset was published; 0 when none after the position was. Before this offset, the numbers of
   * discarded events are unknown, and the numbering continues at a number that cannot have been used.
   */
  exactFrom: number
}

export type LogFollower = {
  /** After the last published event. */
  readonly position: LogPosition
  /** Where readers can start, in ascending order of `offset` and `seq`. */
  getStarts(): Checkpoint[]
  readonly times: OutputTimeLookup
  /** Resolves with true when the process has exited and all its output is decoded, with false after close(). */
  readonly finished: Promise<boolean>
  close(): void
}

export function followLog(options: FollowerOptions): LogFollower {
  const { detachedProcess, provider, runDir, start, checkpointBytes, log, onProgress } = options
  const output = detachedProcess.logs.stdout
  const watcher = createOutputWatcher(detachedProcess, ['stdout'])
  const times = createOutputTimeLookup(output)
  let decoder = createEventDecoder(provider, start.position)
  let published: LogPosition = start.position
  let readOffset = start.position.offset
  let { checkpoints } = start
  const recent: Checkpoint[] = []
  let unsaved: Checkpoint[] = []
  let lastAt = start.position.at
  let added = 0
  let hasFailedWrite = false
  let closed = false

  const toCheckpoint = (position: LogPosition): Checkpoint => {
    lastAt = times.find(position.offset, readOffset) ?? lastAt
    return { ...position, at: lastAt }
  }
  const isExact = () => readOffset >= start.exactFrom
  const isDistant = (before: LogPosition, last: Checkpoint | undefined, bytes: number) =>
    before.offset - (last?.offset ?? 0) >= bytes

  function record({ before }: DecodedLine): void {
    if (before.notice !== null || isDistant(before, checkpoints.at(-1), checkpointBytes)) {
      const checkpoint = toCheckpoint(before)
      checkpoints.push(checkpoint)
      unsaved.push(checkpoint)
      recent.push(checkpoint)
    } else if (isDistant(before, recent.at(-1), RECENT_BYTES)) {
      recent.push(toCheckpoint(before))
    }
    if (recent.length > RECENT_COUNT) recent.shift()
  }

  async function compact(): Promise<void> {
    added += unsaved.length
    if (added < COMPACT_COUNT) return
    added = 0
    const retained = (await output.read(0, 1)).offset
    checkpoints = checkpoints.filter(({ offset }) => offset >= retained)
    replaceCheckpoints(runDir, checkpoints)
    unsaved = []
  }

  /** Without the files, only a restarted agent whose log has lost its head is affected. */
  async function save(): Promise<void> {
    try {
      await compact()
      if (unsaved.length > 0) appendCheckpoints(runDir, unsaved)
      unsaved = []
      // An inexact position would count as exact after another restart.
      if (isExact()) writePosition(runDir, { ...decoder.position, at: lastAt })
      hasFailedWrite = false
    } catch (err) {
      if (!hasFailedWrite) log.error({ err, runDir }, 'failed to write the checkpoints of a run')
      hasFailedWrite = true
    }
  }

  async function publish(): Promise<void> {
    await save()
    published = decoder.position
    if (!closed) onProgress()
  }

  /** @param end offset after the last byte of the output; Infinity while it is unknown */
  async function decodeNext(end: number): Promise<boolean> {
    const { offset, bytes } = await output.read(readOffset, Math.min(CHUNK_BYTES, end - readOffset))
    if (bytes.length === 0) return false
    if (offset > readOffset && !isExact()) {
      // An event has at least one byte.
      const { position } = decoder
      decoder = createEventDecoder(provider, { ...position, seq: Math.max(position.seq, offset) })
    }
    readOffset = offset + bytes.length
    for (const line of decoder.push(offset, bytes)) record(line)
    await publish()
    await yieldToEventLoop()
    return true
  }

  async function run(): Promise<boolean> {
    // A new run: also the proof that no event was published before.
    await publish()
    let end = Number.POSITIVE_INFINITY
    while (!closed) {
      // Read the exit before the log: the log of an exited process is complete. Under the shell runner, background
      // processes may append to it.
      const { exit } = detachedProcess
      if (exit !== null && end === Number.POSITIVE_INFINITY) end = await output.size()
      if (readOffset < end && (await decodeNext(end))) continue
      if (exit !== null) break
      await watcher.waitForChange(REREAD_MS)
    }
    if (closed) return false
    for (const line of decoder.end()) record(line)
    await publish()
    return true
  }

  return {
    get position() {
      return published
    },
    getStarts() {
      const [{ offset: recentStart } = { offset: Number.POSITIVE_INFINITY }] = recent
      return [...checkpoints.filter(({ offset }) => offset < recentStart), ...recent]
    },
    times,
    finished: run().finally(() => watcher.close()),
    close() {
      closed = true
      watcher.close()
    },
  }
}

/** Finds where to continue after a restart of the agent. `saved.position`: undefined when missing or damaged. */
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
