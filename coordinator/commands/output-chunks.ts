// The output of a record: the last 1 MiB of each stream as chunks of bytes, in one piece up to the stream's end.
import type { CommandStream } from '../../shared/api/commands.ts'
import { OUTPUT_CHUNK_BYTES } from '../../shared/api/reports.ts'
import { LIMITS } from '../../shared/limits.ts'
import type { Db } from '../db/open.ts'
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

/**
 * What pieces, in the order they came, add to a stream: bytes that follow `kept`, or after a gap bytes that replace
 * it. Pure. null when there is nothing new.
 */
export function joinPieces(kept: Kept, pieces: readonly Piece[]): (Piece & { replaces: boolean }) | null {
  let { bytes: end } = kept
  let replaces = false
  let parts: Buffer[] = []
  for (const { offset, data } of pieces) {
    if (offset + data.length <= end) continue
    if (offset > end) {
      replaces = true
      parts = []
      end = offset
    }
    parts.push(data.subarray(end - offset))
    end = offset + data.length
  }
  if (parts.length === 0) return null
  const all = parts.length === 1 && parts[0] ? parts[0] : Buffer.concat(parts)
  const data = all.subarray(-KEPT_BYTES)
  return { offset: end - data.length, data, replaces: replaces || data.length < all.length }
}

/** Adds what is new of the pieces and lets go of what is then too old. Returns what is kept. */
export async function appendOutput(
  trx: Trx,
  commandId: string,
  stream: CommandStream,
  kept: Kept,
  pieces: readonly Piece[],
): Promise<Kept> {
  const added = joinPieces(kept, pieces)
  if (added === null) return kept
  const bytes = added.offset + added.data.length
  if (added.replaces) await removeChunks(trx, commandId, stream)
  const grown =
    added.replaces || kept.start === kept.bytes ? added : await withLastChunk(trx, commandId, stream, added)
  for (let from = 0; from < grown.data.length; from += OUTPUT_CHUNK_BYTES) {
    const data = grown.data.subarray(from, from + OUTPUT_CHUNK_BYTES)
    await trx
      .insertInto('command_output')
      .values({ command_id: commandId, stream, start_offset: grown.offset + from, size: data.length, data })
      .execute()
  }
  const oldest = Math.max(0, bytes - KEPT_BYTES)
  if (!added.replaces && oldest > kept.start) {
    await trx
      .deleteFrom('command_output')
      .where('command_id', '=', commandId)
      .where('stream', '=', stream)
      .where((is) => is(is('start_offset', '+', is.ref('size')), '<=', oldest))
      .execute()
  }
  return { start: Math.max(added.replaces ? added.offset : kept.start, oldest), bytes }
}

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
