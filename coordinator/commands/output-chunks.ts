// The output of a record: the last 1 MiB of each stream as chunks of bytes, in one piece up to the stream's end.
import type { CommandStream } from '../../shared/api/commands.ts'
import { OUTPUT_CHUNK_BYTES } from '../../shared/api/reports.ts'
import { LIMITS } from '../../shared/limits.ts'
import { preparedWrite } from '../db/hot.ts'
import type { Db } from '../db/open.ts'
import type { CommandRow } from '../db/schema.ts'
import type { Trx } from '../db/transaction.ts'

/** Which part of a stream is kept: from `start` to its end at `bytes`, without a gap. */
export type Kept = { start: number; bytes: number }
export type Piece = { offset: number; data: Buffer }

const KEPT_BYTES = LIMITS.commandOutputBytes
/**
 * A last chunk smaller than this grows by what comes next: so 1 MiB is at most 65 chunks (spec §4.4 allows 256),
 * however small the pieces were that it came in.
 */
const SMALL_CHUNK_BYTES = 16 * 1024

/** Bytes that a stream gets: they follow what is kept, or `replaces` it. `kept` is what is kept then. */
export type Added = Piece & { replaces: boolean; kept: Kept }

export const keptOf = (row: CommandRow, stream: CommandStream): Kept => ({
  start: row[`${stream}_start`],
  bytes: row[`${stream}_bytes`],
})

/**
 * What pieces, in the order they came, make of a stream. Bytes that are there already are left out; those after a gap
 * replace what was before. Pure. null when there is nothing new.
 * @param end the length of the stream as far as it is known: where it is longer than what came, the end is missing, and
 * nothing is kept
 */
export function planOutput(kept: Kept, pieces: readonly Piece[], end = 0): Added | null {
  let { bytes } = kept
  let replaces = false
  let parts: Buffer[] = []
  for (const { offset, data } of pieces) {
    if (offset + data.length <= bytes) continue
    if (offset > bytes) {
      replaces = true
      parts = []
      bytes = offset
    }
    parts.push(data.subarray(bytes - offset))
    bytes = offset + data.length
  }
  if (end > bytes) {
    return { offset: end, data: Buffer.alloc(0), replaces: true, kept: { start: end, bytes: end } }
  }
  const [only] = parts
  if (only === undefined) return null
  const all = parts.length === 1 ? only : Buffer.concat(parts)
  const data = all.subarray(-KEPT_BYTES)
  const offset = bytes - data.length
  const alone = replaces || data.length < all.length
  const start = Math.max(alone ? offset : kept.start, bytes - KEPT_BYTES)
  return { offset, data, replaces: alone, kept: { start, bytes } }
}

/** Writes what was planned, and lets go of chunks that are then too old. */
export async function writeOutput(
  trx: Trx,
  commandId: string,
  stream: CommandStream,
  before: Kept,
  added: Added,
): Promise<void> {
  const hadSome = before.start < before.bytes
  if (added.replaces && hadSome) await removeChunks(trx, commandId, stream)
  const { offset, data } =
    !added.replaces && hadSome ? await withLastChunk(trx, commandId, stream, added) : added
  for (let from = 0; from < data.length; from += OUTPUT_CHUNK_BYTES) {
    await insertChunk(trx, commandId, stream, offset + from, data.subarray(from, from + OUTPUT_CHUNK_BYTES))
  }
  if (added.replaces || added.kept.start === before.start) return
  await trx
    .deleteFrom('command_output')
    .where('command_id', '=', commandId)
    .where('stream', '=', stream)
    .where((is) => is(is('start_offset', '+', is.ref('size')), '<=', added.kept.start))
    .execute()
}

const chunkInsert = preparedWrite((db) =>
  db
    .insertInto('command_output')
    .values({ command_id: '', stream: 'stdout', start_offset: 0, size: 0, data: Buffer.alloc(0) }),
)
const insertChunk = (trx: Trx, commandId: string, stream: CommandStream, offset: number, data: Buffer) =>
  chunkInsert(trx, [commandId, stream, offset, data.length, data])

/** Takes the last chunk out, to be written again with what follows it, when it is small. */
async function withLastChunk(
  trx: Trx,
  commandId: string,
  stream: CommandStream,
  added: Piece,
): Promise<Piece> {
  const last = await trx
    .selectFrom('command_output')
    .select(['start_offset', 'size'])
    .where('command_id', '=', commandId)
    .where('stream', '=', stream)
    .orderBy('start_offset', 'desc')
    .limit(1)
    .executeTakeFirst()
  if (last === undefined || last.size >= SMALL_CHUNK_BYTES) return added
  const { data } = await trx
    .deleteFrom('command_output')
    .where('command_id', '=', commandId)
    .where('stream', '=', stream)
    .where('start_offset', '=', last.start_offset)
    .returning('data')
    .executeTakeFirstOrThrow()
  return { offset: last.start_offset, data: Buffer.concat([data, added.data]) }
}

export async function removeChunks(trx: Trx, commandId: string, stream: CommandStream): Promise<void> {
  await trx
    .deleteFrom('command_output')
    .where('command_id', '=', commandId)
    .where('stream', '=', stream)
    .execute()
}

/** Of whole records. */
export async function removeOutput(trx: Trx, commandIds: readonly string[]): Promise<void> {
  await trx
    .deleteFrom('command_output')
    .where('command_id', 'in', [...commandIds])
    .execute()
}

/** Up to `limit` bytes from the first that is kept at or after `offset`. Empty when there are none (any more). */
export async function readOutput(
  db: Db,
  commandId: string,
  stream: CommandStream,
  offset: number,
  limit: number,
): Promise<Piece> {
  const chunks = await db
    .selectFrom('command_output')
    .select(['start_offset', 'data'])
    .where('command_id', '=', commandId)
    .where('stream', '=', stream)
    .where((is) => is(is('start_offset', '+', is.ref('size')), '>', offset))
    .where('start_offset', '<', offset + limit)
    .orderBy('start_offset')
    .execute()
  const first = chunks[0]
  if (first === undefined) return { offset, data: Buffer.alloc(0) }
  const all = Buffer.concat(chunks.map(({ data }) => data))
  const from = Math.max(offset, first.start_offset)
  return {
    offset: from,
    data: all.subarray(from - first.start_offset, offset + limit - first.start_offset),
  }
}
