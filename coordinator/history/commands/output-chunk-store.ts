// Stores the output of a command: the last 1 MiB of each stream, as contiguous chunks up to the stream's end.
import { sql } from 'kysely'
import type { CommandStream } from '../../../shared/api/commands.ts'
import { LIMITS } from '../../../shared/limits.ts'
import { OUTPUT_CHUNK_BYTES } from '../../../shared/report-limits.ts'
import type { Db } from '../../db/open.ts'
import { prepareTrxQuery, prepareWrite } from '../../db/prepared-queries.ts'
import type { CommandRow } from '../../db/schema.ts'
import type { Trx } from '../../db/transaction.ts'

/** The stored bytes of a stream: from offset `start` to the stream's length `bytes`, without a gap. */
export type RetainedRange = { start: number; bytes: number }
export type OutputSegment = { offset: number; data: Buffer }
/** New bytes of a stream. They follow the stored ones, or replace them. `retained` is the range afterwards. */
export type OutputUpdate = OutputSegment & { replaces: boolean; retained: RetainedRange }

const MAX_RETAINED_BYTES = LIMITS.commandOutputBytes
/**
 * A last chunk smaller than this is extended by the next bytes. So 1 MiB is at most 65 chunks (spec §4.4 allows 256),
 * however small the reported segments are.
 */
const SMALL_CHUNK_BYTES = 16 * 1024

export const retainedRange = (row: CommandRow, stream: CommandStream): RetainedRange => ({
  start: row[`${stream}_start`],
  bytes: row[`${stream}_bytes`],
})

/**
 * Merges segments, in the order they were reported, into a stream. Bytes that are stored already are left out; bytes
 * after a gap replace everything before them. Pure. null when nothing is new.
 * @param streamLength the length of the stream, 0 when unknown. When it exceeds the reported bytes, the final output is
 * missing and nothing is retained.
 */
export function mergeSegments(
  retained: RetainedRange,
  segments: readonly OutputSegment[],
  streamLength = 0,
): OutputUpdate | null {
  let { bytes } = retained
  let hasGap = false
  let parts: Buffer[] = []
  for (const { offset, data } of segments) {
    if (offset + data.length <= bytes) continue
    if (offset > bytes) {
      hasGap = true
      parts = []
      bytes = offset
    }
    parts.push(data.subarray(bytes - offset))
    bytes = offset + data.length
  }
  if (streamLength > bytes) {
    return {
      offset: streamLength,
      data: Buffer.alloc(0),
      replaces: true,
      retained: { start: streamLength, bytes: streamLength },
    }
  }
  const [first] = parts
  if (first === undefined) return null
  const added = parts.length === 1 ? first : Buffer.concat(parts)
  const data = added.subarray(-MAX_RETAINED_BYTES)
  const offset = bytes - data.length
  const replaces = hasGap || data.length < added.length
  const start = Math.max(replaces ? offset : retained.start, bytes - MAX_RETAINED_BYTES)
  return { offset, data, replaces, retained: { start, bytes } }
}

/** Writes an update, and deletes the chunks that are no longer in the retained range. */
export async function writeOutput(
  trx: Trx,
  commandId: string,
  stream: CommandStream,
  before: RetainedRange,
  update: OutputUpdate,
): Promise<void> {
  const hadOutput = before.start < before.bytes
  if (update.replaces && hadOutput) await deleteChunks(trx, commandId, stream)
  const { offset, data } =
    !update.replaces && hadOutput ? await mergeWithLastChunk(trx, commandId, stream, update) : update
  for (let from = 0; from < data.length; from += OUTPUT_CHUNK_BYTES) {
    await insertChunk(trx, commandId, stream, offset + from, data.subarray(from, from + OUTPUT_CHUNK_BYTES))
  }
  if (update.replaces || update.retained.start === before.start) return
  await trx
    .deleteFrom('command_output')
    .where('command_id', '=', commandId)
    .where('stream', '=', stream)
    .where((eb) => eb(eb('start_offset', '+', eb.ref('size')), '<=', update.retained.start))
    .execute()
}

const executeChunkInsert = prepareWrite((db) =>
  db
    .insertInto('command_output')
    .values({ command_id: '', stream: 'stdout', start_offset: 0, size: 0, data: Buffer.alloc(0) }),
)
const insertChunk = (trx: Trx, commandId: string, stream: CommandStream, offset: number, data: Buffer) =>
  executeChunkInsert(trx, [commandId, stream, offset, data.length, data])

const selectLastChunk = prepareTrxQuery<{ start_offset: number; size: number }>((trx) =>
  trx
    .selectFrom('command_output')
    .select(['start_offset', 'size'])
    .where('command_id', '=', '')
    .where('stream', '=', 'stdout')
    .orderBy('start_offset', 'desc')
    .limit(sql.lit(1)),
)
const deleteAndReturnChunk = prepareTrxQuery<{ data: Buffer }>((trx) =>
  trx
    .deleteFrom('command_output')
    .where('command_id', '=', '')
    .where('stream', '=', 'stdout')
    .where('start_offset', '=', 0)
    .returning('data'),
)

/** If the last chunk is small, deletes it and returns its bytes together with the new ones. */
async function mergeWithLastChunk(
  trx: Trx,
  commandId: string,
  stream: CommandStream,
  added: OutputSegment,
): Promise<OutputSegment> {
  const [last] = await selectLastChunk(trx, [commandId, stream])
  if (last === undefined || last.size >= SMALL_CHUNK_BYTES) return added
  const [deleted] = await deleteAndReturnChunk(trx, [commandId, stream, last.start_offset])
  // The new bytes alone would be stored at the offset of the last chunk.
  if (deleted === undefined) throw new Error(`the last output of ${commandId} was deleted meanwhile`)
  return { offset: last.start_offset, data: Buffer.concat([deleted.data, added.data]) }
}

async function deleteChunks(trx: Trx, commandId: string, stream: CommandStream): Promise<void> {
  await trx
    .deleteFrom('command_output')
    .where('command_id', '=', commandId)
    .where('stream', '=', stream)
    .execute()
}

/** Deletes the stored output of whole commands. */
export async function deleteOutput(trx: Trx, commandIds: readonly string[]): Promise<void> {
  await trx
    .deleteFrom('command_output')
    .where('command_id', 'in', [...commandIds])
    .execute()
}

/** Reads up to `limit` bytes from the first stored offset at or after `offset`. Empty when none are stored there. */
export async function readOutput(
  db: Db,
  commandId: string,
  stream: CommandStream,
  offset: number,
  limit: number,
): Promise<OutputSegment> {
  const chunks = await db
    .selectFrom('command_output')
    .select(['start_offset', 'data'])
    .where('command_id', '=', commandId)
    .where('stream', '=', stream)
    .where((eb) => eb(eb('start_offset', '+', eb.ref('size')), '>', offset))
    .where('start_offset', '<', offset + limit)
    .orderBy('start_offset')
    .execute()
  const first = chunks[0]
  if (first === undefined) return { offset, data: Buffer.alloc(0) }
  const bytes = Buffer.concat(chunks.map(({ data }) => data))
  const from = Math.max(offset, first.start_offset)
  return {
    offset: from,
    data: bytes.subarray(from - first.start_offset, offset + limit - first.start_offset),
  }
}
