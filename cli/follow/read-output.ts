// Reads the output of a detached process from an offset on, each byte once.
import {
  type AttachedEvent,
  type Exit,
  OUTPUT_END,
  type OutputStream,
  readAttached,
  readOutput as readClientOutput,
} from '../../client/boxes/output.ts'
import type { Offsets } from '../../shared/api/processes.ts'
import { formatEventId } from '../../shared/event-id.ts'
import { type FollowOptions, followStream } from './follow-stream.ts'

export type StreamName = OutputStream
export type OutputChunk = {
  stream: StreamName
  bytes: Buffer
  offset: number
  /** When the bytes were written, RFC 3339; null when unknown or not requested. */
  at: string | null
}

export type ConnectionOptions = FollowOptions & {
  processId: string
  query?: { streams?: StreamName; since?: string; timestamps?: 'true' }
}

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

const getRoute = (processId: string): string => `/exec/${encodeURIComponent(processId)}/stream`

const createOpen =
  ({ edge, processId, query, signal }: ConnectionOptions) =>
  (position: Offsets) =>
    edge.openStream(
      getRoute(processId),
      { encoding: 'base64', ...query },
      { signal, headers: { 'last-event-id': formatEventId(position) } },
    )

/** Resolves with the exit event, or null if `until` was reached first. Throws as followStream does. */
export async function readOutput(options: ReadOutputOptions): Promise<Exit | null> {
  const { from, until, onAttached, onChunk, onMissing } = options
  const position = { ...from }
  const isComplete = () =>
    until !== undefined && position.stdout >= until.stdout && position.stderr >= until.stderr
  if (isComplete()) return null
  const chunks = followStream(getRoute(options.processId), options, (resuming) =>
    readClientOutput({
      ...resuming,
      from,
      open: createOpen(options),
      onAttached: ({ hasTimes }) => onAttached?.(hasTimes),
    }),
  )
  try {
    for (;;) {
      const next = await chunks.next()
      if (next.done) return next.value
      const { stream, bytes, offset, missing, at } = next.value
      if (missing > 0) onMissing(stream, missing)
      const { buffer, byteOffset, length } = bytes
      position[stream] = offset + length
      if (length > 0) await onChunk({ stream, bytes: Buffer.from(buffer, byteOffset, length), offset, at })
      if (isComplete()) return null
    }
  } finally {
    // Also after an error of `onChunk`: an open stream keeps the process alive.
    await chunks.return(undefined as never)
  }
}

/** The current length of both streams in bytes. Throws as followStream does. */
export async function getOutputSize(options: ConnectionOptions): Promise<Offsets> {
  const { offsets } = await readFirst(options, OUTPUT_END)
  return offsets
}

/**
 * The offsets of the first output that was written at `since` or later. `hasTimes`: whether that is known; otherwise the
 * offsets are 0. Throws as followStream does.
 * @param since milliseconds since the epoch
 */
export const getOffsetsSince = (options: ConnectionOptions, since: number): Promise<AttachedEvent> =>
  readFirst({ ...options, query: { since: new Date(since).toISOString() } }, { stdout: 0, stderr: 0 })

async function readFirst(options: ConnectionOptions, from: Offsets): Promise<AttachedEvent> {
  const attached = followStream(getRoute(options.processId), options, (resuming) =>
    readAttached({ ...resuming, from, open: createOpen(options) }),
  )
  try {
    return (await attached.next()).value
  } finally {
    await attached.return(undefined as never)
  }
}
