// Reads the output of a detached process from an offset on, each byte once.
import type { Offsets, StreamEvents } from '../../shared/api/processes.ts'
import type { StreamName } from './events.ts'
import { type ProcessStreamOptions, readProcessStream } from './process-stream.ts'
import { createStreamPosition } from './stream-position.ts'

export type OutputChunk = {
  stream: StreamName
  bytes: Buffer
  offset: number
  /** When the bytes were written, RFC 3339; null when unknown or not requested. */
  at: string | null
}
export type ExitEvent = StreamEvents['exit']

export type ConnectionOptions = Omit<ProcessStreamOptions, 'getLastEventId' | 'onEvent'>

export type ReadOutputOptions = ConnectionOptions & {
  from: Offsets
  /** Stop at these offsets. Default: when the process exits. */
  until?: Offsets
  /** `hasTimes`: whether the times of the output are known; false unless `timestamps` was requested. */
  onAttached?(hasTimes: boolean): void
  /** The next chunk is read after the promise resolves. */
  onChunk(chunk: OutputChunk): Promise<void>
  /** The box has discarded `bytes` bytes before the next chunk or before the end. */
  onMissing(stream: StreamName, bytes: number): void
}

/** Resolves with the exit event, or null if `until` was reached first. Throws as readResumableStream does. */
export async function readOutput(options: ReadOutputOptions): Promise<ExitEvent | null> {
  const { from, until, onAttached, onChunk, onMissing } = options
  const position = createStreamPosition(from)
  const isComplete = () => until !== undefined && position.hasReached(until)
  if (isComplete()) return null
  let exit: ExitEvent | null = null
  const reportMissing = (stream: StreamName, bytes: number) => {
    if (bytes > 0) onMissing(stream, bytes)
  }
  await readProcessStream({
    ...options,
    getLastEventId: position.getEventId,
    async onEvent({ name, data }) {
      if (name === 'attached') onAttached?.(data.hasTimes === true)
      if (name === 'stdout' || name === 'stderr') {
        const { bytes, offset, missing } = position.advance(name, data)
        reportMissing(name, missing)
        if (bytes.length > 0) await onChunk({ stream: name, bytes, offset, at: data.at ?? null })
      }
      if (name === 'exit') {
        reportMissing('stdout', position.countMissing('stdout', data.stdoutOffset))
        reportMissing('stderr', position.countMissing('stderr', data.stderrOffset))
        exit = data
      }
      return exit !== null || isComplete()
    },
  })
  return exit
}

/** The largest offset in an event id. The coordinator replaces an offset beyond the end by the end of the log. */
const MAX_OFFSET = 999_999_999_999_999

/** The current length of both streams in bytes. Throws as readResumableStream does. */
export async function getOutputSize(options: ConnectionOptions): Promise<Offsets> {
  let size: Offsets = { stdout: 0, stderr: 0 }
  await readProcessStream({
    ...options,
    getLastEventId: () => `${MAX_OFFSET}:${MAX_OFFSET}`,
    async onEvent({ name, data }) {
      if (name !== 'attached') return false
      size = { stdout: data.stdoutOffset, stderr: data.stderrOffset }
      return true
    },
  })
  return size
}

/**
 * The offsets of the first output that was written at `since` or later. `hasTimes`: whether that is known; otherwise the
 * offsets are 0. Throws as readResumableStream does.
 * @param since milliseconds since the epoch
 */
export async function getOffsetsSince(
  options: ConnectionOptions,
  since: number,
): Promise<{ offsets: Offsets; hasTimes: boolean }> {
  let result = { offsets: { stdout: 0, stderr: 0 }, hasTimes: false }
  await readProcessStream({
    ...options,
    query: { since: new Date(since).toISOString() },
    getLastEventId: () => '0:0',
    async onEvent({ name, data }) {
      if (name !== 'attached') return false
      const { stdoutOffset, stderrOffset, hasTimes = false } = data
      result = { offsets: { stdout: stdoutOffset, stderr: stderrOffset }, hasTimes }
      return true
    },
  })
  return result
}
