// The stored form of four hours of process snapshots: one line of JSON for each snapshot, compressed. Pure functions.
import { promisify } from 'node:util'
import { deflate, deflateSync, inflateSync } from 'node:zlib'
import type { ProcessDelta } from '../../../shared/api/process-snapshots.ts'
import {
  applyDelta,
  applyDeltas,
  createDelta,
  EMPTY_SNAPSHOT,
  type ProcessSnapshot,
} from '../../../shared/process-delta.ts'

/** The period of a chunk. Longer ones would be smaller in total, but take longer to extend. */
export const CHUNK_MS = 4 * 60 * 60 * 1000
/** Bytes of a chunk, before compression. A thousand busy processes need half of it. */
export const MAX_CHUNK_BYTES = 2 * 1024 * 1024
/** Twice the number of minutes: an agent takes one snapshot per minute, and one after each restart. */
export const MAX_CHUNK_SNAPSHOTS = 480

/** The first line of a chunk. */
const VERSION = '1'
/** A chunk, and its first line. */
const MAX_DECODED_BYTES = MAX_CHUNK_BYTES + 1024

/**
 * The snapshots in the order of their arrival, which is not the order of their times after a clock was set back. Each line has
 * the differences from the one before.
 */
export type Chunk = {
  /** Milliseconds since the epoch, as all times. */
  readonly start: number
  readonly times: number[]
  readonly lines: string[]
  /** The size before compression. */
  bytes: number
  /** The last snapshot, when it is known. */
  last: ProcessSnapshot | undefined
}

/** `elapsed`: milliseconds from the time of the line before, or from the start of the chunk. */
type Line = [
  elapsed: number,
  total: ProcessDelta['total'],
  added: ProcessDelta['added'],
  removed: ProcessDelta['removed'],
  usage: ProcessDelta['usage'],
  ports?: ProcessDelta['ports'],
]

/** `previousAt`: the time of the snapshot from which `delta` has the differences; null when the snapshot is complete. */
export type NewSnapshot = { at: number; previousAt: number | null; delta: ProcessDelta }

export const getChunkStart = (at: number): number => Math.floor(at / CHUNK_MS) * CHUNK_MS

export const emptyChunk = (start: number): Chunk => ({
  start,
  times: [],
  lines: [],
  bytes: 0,
  last: EMPTY_SNAPSHOT,
})

const formatChunk = ({ lines }: Chunk): string => [VERSION, ...lines].join('\n')

/** @param level of compression, 1 to 9 */
export const encodeChunk = (chunk: Chunk, level: number): Buffer => deflateSync(formatChunk(chunk), { level })

const deflateInThreadPool = promisify(deflate)

/** Encodes a chunk like encodeChunk(), in the thread pool. */
export const encodeChunkInThreadPool = (chunk: Chunk, level: number): Promise<Buffer> =>
  deflateInThreadPool(formatChunk(chunk), { level })

/** Throws when the bytes are damaged: zlib's format has a checksum. */
export function decodeChunk(start: number, data: Uint8Array): Chunk {
  const decoded = inflateSync(data, { maxOutputLength: MAX_DECODED_BYTES })
  const [version, ...lines] = decoded.toString().split('\n')
  if (version !== VERSION) throw new Error('The chunk has an unknown version.')
  let at = start
  const times = lines.map((line) => {
    at += Number.parseInt(line.slice(1), 10)
    return at
  })
  if (Number.isNaN(at)) throw new Error('The chunk has a line without a time.')
  return { start, times, lines, bytes: decoded.length, last: undefined }
}

/**
 * Returns false for the time of another snapshot, when the chunk has too many, and when the snapshot before it is not the last
 * one of the chunk. Costs little: to be called before a delta is parsed.
 */
export function canAppend({ times }: Chunk, { at, previousAt }: Omit<NewSnapshot, 'delta'>): boolean {
  if (times.length >= MAX_CHUNK_SNAPSHOTS || times.includes(at)) return false
  return previousAt === null || previousAt === times.at(-1)
}

/** Adds a snapshot for which canAppend() is true. Returns false, and adds nothing, when the chunk would be too large. */
export function appendSnapshot(chunk: Chunk, { at, previousAt, delta }: NewSnapshot): boolean {
  const { times, lines, start } = chunk
  const complete = previousAt === null ? applyDelta(EMPTY_SNAPSHOT, delta) : undefined
  const { total, added, removed, usage, ports } = complete ? createDelta(readLast(chunk), complete) : delta
  const fields: Line = [at - (times.at(-1) ?? start), total, added, removed, usage]
  if (ports !== undefined) fields.push(ports)
  const line = JSON.stringify(fields)
  const bytes = Buffer.byteLength(line) + 1
  if (chunk.bytes + bytes > MAX_CHUNK_BYTES) return false
  times.push(at)
  lines.push(line)
  chunk.bytes += bytes
  chunk.last = complete ?? (chunk.last && applyDelta(chunk.last, delta))
  return true
}

/** Throws when a line is damaged. */
export function readLast(chunk: Chunk): ProcessSnapshot {
  chunk.last ??= readSnapshot(chunk, chunk.lines.length - 1)
  return chunk.last
}

/** The snapshot at this index of `times`. Throws when a line is damaged. */
export const readSnapshot = ({ lines }: Chunk, index: number): ProcessSnapshot =>
  applyDeltas(EMPTY_SNAPSHOT, parseDeltas(lines.slice(0, index + 1)))

function* parseDeltas(lines: readonly string[]): Generator<ProcessDelta> {
  for (const line of lines) {
    const [, total, added, removed, usage, ports] = JSON.parse(line) as Line
    yield { total, added, removed, usage, ...(ports && { ports }) }
  }
}

/** Command lines may contain secrets: a workspace with zero data retention does not store them. Names are stored. */
export const withoutCommands = (added: ProcessDelta['added']): ProcessDelta['added'] =>
  added.map(([pid, ppid, start, user, name]) => [pid, ppid, start, user, name, null])

/** Removes the command lines from all snapshots. Returns undefined when the chunk has none. Throws when a line is damaged. */
export function blankCommands(chunk: Chunk): Chunk | undefined {
  let hasChanged = false
  const lines = chunk.lines.map((line) => {
    const [elapsed, total, added, ...rest] = JSON.parse(line) as Line
    if (added.every(([, , , , , command]) => command === null)) return line
    hasChanged = true
    return JSON.stringify([elapsed, total, withoutCommands(added), ...rest])
  })
  if (!hasChanged) return undefined
  return { ...chunk, lines, bytes: Buffer.byteLength(formatChunk({ ...chunk, lines })), last: undefined }
}
