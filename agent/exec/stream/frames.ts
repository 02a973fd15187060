// Produces the frames of an output stream (spec §4.14) on demand. The only state of a stream is its offsets in the two
// logs. For a client that stalls, one frame is buffered and the logs are neither read nor watched.
import {
  type Offsets,
  STREAM_CHUNK_BYTES,
  type StreamEncoding,
  type StreamEvents,
} from '../../../shared/api/processes.ts'
import { LIMITS } from '../../../shared/limits.ts'
import type { OutputFrame, StreamFrame } from '../../../shared/stream-frames.ts'
import { incompleteSuffixLength } from '../../../shared/utf8.ts'
import { toExitFields } from '../detached/exit-fields.ts'
import type { OutputTimes } from '../detached/output-times.ts'
import type { DetachedProcess, StreamName } from '../detached/types.ts'
import { createOutputWatcher, systemTimer, type Timer } from '../output-watcher.ts'

export type StreamOptions = {
  detachedProcess: DetachedProcess
  /** Where to start, in bytes. An offset beyond the end of a requested stream is moved to the end. */
  offsets: Offsets
  /** The requested streams. The offset of another stream stays unchanged. */
  streams: readonly StreamName[]
  /** utf8: no frame ends inside a character. */
  encoding: StreamEncoding
  /** Start with the output of this time, in milliseconds since the epoch, unless `offsets` are later. Default: null. */
  since?: number | null
  /** Output frames have `at`, and contain the output of one time. Default: false. */
  timestamps?: boolean
  /** Called when a log cannot be read. */
  onError(error: unknown): void
  /** `now()` is monotonic, in milliseconds. */
  time?: Timer & { now(): number }
}

const systemTime = { ...systemTimer, now: () => performance.now() }

/** Ends after an `exit`, `reconnect` or `error` frame, or when the signal aborts. */
export async function* streamFrames(
  options: StreamOptions,
  signal: AbortSignal,
): AsyncGenerator<StreamFrame, void, undefined> {
  const { detachedProcess, streams, encoding, onError, time = systemTime } = options
  const { since = null, timestamps = false } = options
  const offsets = { ...options.offsets }
  const needsTimes = timestamps || since !== null
  const times: Partial<Record<StreamName, OutputTimes | null>> = {}
  const watcher = createOutputWatcher(detachedProcess, streams, time)
  const close = () => watcher.close()
  signal.addEventListener('abort', close, { once: true })
  const position = () => ({ stdoutOffset: offsets.stdout, stderrOffset: offsets.stderr })

  /** The next output of one stream; null when there is none now. Advances the offset. */
  async function nextOutput(name: StreamName, hasExited: boolean): Promise<OutputFrame | null> {
    const max = times[name]?.limitRead(offsets[name], STREAM_CHUNK_BYTES, encoding) ?? STREAM_CHUNK_BYTES
    const { offset, bytes: read } = await detachedProcess.logs[name].read(offsets[name], max)
    const { length, at } = times[name]?.limitChunk(offset, read.length, encoding) ?? {
      length: read.length,
      at: null,
    }
    const bytes = read.subarray(0, length)
    // A full chunk, or a read that the discarded head cut short, is followed by more output.
    const hasMore =
      read.length === max || length < read.length || (offset !== offsets[name] && bytes.length > 0)
    const split = encoding === 'utf8' && (hasMore || !hasExited) ? incompleteSuffixLength(bytes) : 0
    const complete = bytes.subarray(0, bytes.length - split)
    offsets[name] = offset + complete.length
    if (complete.length > 0) return { event: name, ...position(), ...(timestamps && { at }), bytes: complete }
    return hasMore ? nextOutput(name, hasExited) : null
  }

  async function start(name: StreamName): Promise<void> {
    const log = detachedProcess.logs[name]
    const size = await log.size()
    if (needsTimes) times[name] = log.openTimes()
    const sinceOffset = since === null ? 0 : (times[name]?.getOffsetSince(since) ?? 0)
    offsets[name] = Math.min(size, Math.max(offsets[name], sinceOffset))
  }

  try {
    for (const name of streams) await start(name)
    const hasTimes = streams.every((name) => (times[name] ?? null) !== null)
    const { processId } = detachedProcess
    yield { event: 'attached', ...position(), processId, ...(needsTimes && { hasTimes }) }
    const startedAt = time.now()
    let lastFrameAt = startedAt
    while (!signal.aborted) {
      const expiresAt = startedAt + LIMITS.streamReconnectMs
      if (time.now() >= expiresAt) {
        yield { event: 'reconnect', ...position() }
        return
      }
      // Read the exit before the logs: the logs of an exited process are complete.
      const { exit } = detachedProcess
      let hasOutput = false
      for (const name of streams) {
        const frame = await nextOutput(name, exit !== null)
        if (frame === null) continue
        hasOutput = true
        yield frame
        lastFrameAt = time.now()
      }
      if (hasOutput) continue
      if (exit !== null) {
        yield { event: 'exit', ...position(), ...toExitFields(exit) }
        return
      }
      const heartbeatAt = lastFrameAt + LIMITS.streamHeartbeatMs
      if (time.now() >= heartbeatAt) {
        yield { event: 'heartbeat', ...position() }
        lastFrameAt = time.now()
      }
      // After a heartbeat the logs are read again, in case inotify missed a change.
      else await watcher.waitForChange(Math.min(heartbeatAt, expiresAt) - time.now())
    }
  } catch (error) {
    onError(error)
    yield { event: 'error', ...position(), ...readFailure(error) }
  } finally {
    signal.removeEventListener('abort', close)
    watcher.close()
  }
}

function readFailure(error: unknown): StreamEvents['error'] {
  if (error instanceof Error && 'code' in error && error.code === 'ENOENT')
    return { code: 'not_found', message: 'The output of this process has been deleted.' }
  return { code: 'exec_failed', message: `The output cannot be read: ${String(error)}` }
}
