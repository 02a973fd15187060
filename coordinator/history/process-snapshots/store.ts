// Queries on the chunks of process snapshots. `start`: epoch seconds.
import type { Db } from '../../db/open.ts'
import { prepareWrite } from '../../db/prepared-queries.ts'
import type { ProcessChunkRow } from '../../db/schema.ts'
import type { Trx } from '../../db/transaction.ts'

type StoredChunk = Pick<ProcessChunkRow, 'start' | 'data'>

export const findChunk = (trx: Trx, boxId: string, start: number): Promise<StoredChunk | undefined> =>
  trx
    .selectFrom('process_chunks')
    .select(['start', 'data'])
    .where('box_id', '=', boxId)
    .where('start', '=', start)
    .executeTakeFirst()

/** The last chunk that starts before the time. */
export const findChunkBefore = (trx: Trx, boxId: string, start: number): Promise<StoredChunk | undefined> =>
  trx
    .selectFrom('process_chunks')
    .select(['start', 'data'])
    .where('box_id', '=', boxId)
    .where('start', '<', start)
    .orderBy('start', 'desc')
    .limit(1)
    .executeTakeFirst()

const upsertChunk = prepareWrite((db) =>
  db
    .insertInto('process_chunks')
    .values({ box_id: '', start: 0, data: new Uint8Array() })
    .onConflict((conflict) =>
      conflict.columns(['box_id', 'start']).doUpdateSet((eb) => ({ data: eb.ref('excluded.data') })),
    ),
)

export async function writeChunk(trx: Trx, { box_id, start, data }: ProcessChunkRow): Promise<void> {
  await upsertChunk(trx, [box_id, start, data])
}

/** The chunks that start in the range, both ends included. */
export const listChunks = (db: Db, boxId: string, from: number, to: number): Promise<StoredChunk[]> =>
  db
    .selectFrom('process_chunks')
    .select(['start', 'data'])
    .where('box_id', '=', boxId)
    .where('start', '>=', from)
    .where('start', '<=', to)
    .orderBy('start')
    .execute()

/** The last two chunks that start at `start` or before, and the next one: they have the snapshots nearest to a time. */
export async function listNearestChunks(db: Db, boxId: string, start: number): Promise<StoredChunk[]> {
  const chunks = db.selectFrom('process_chunks').select(['start', 'data']).where('box_id', '=', boxId)
  const before = await chunks.where('start', '<=', start).orderBy('start', 'desc').limit(2).execute()
  const after = await chunks.where('start', '>', start).orderBy('start').limit(1).execute()
  return [...before, ...after]
}

/** Deletes up to `limit` of the oldest chunks that started before the time. Returns their number. */
export async function deleteOldestChunks(trx: Trx, before: number, limit: number): Promise<number> {
  const oldest = await trx
    .selectFrom('process_chunks')
    .select('start')
    .where('start', '<', before)
    .orderBy('start')
    .limit(1)
    .executeTakeFirst()
  if (oldest === undefined) return 0
  const boxIds = trx
    .selectFrom('process_chunks')
    .select('box_id')
    .where('start', '=', oldest.start)
    .limit(limit)
  const { numDeletedRows } = await trx
    .deleteFrom('process_chunks')
    .where('start', '=', oldest.start)
    .where('box_id', 'in', boxIds)
    .executeTakeFirst()
  return Number(numDeletedRows)
}

/** The first chunk that starts after the time. */
export const findNextChunk = (db: Db, boxId: string, after: number): Promise<StoredChunk | undefined> =>
  db
    .selectFrom('process_chunks')
    .select(['start', 'data'])
    .where('box_id', '=', boxId)
    .where('start', '>', after)
    .orderBy('start')
    .limit(1)
    .executeTakeFirst()

/**
 * Replaces the data of a chunk, or deletes the chunk when `data` is null. Returns false, and changes nothing, when the chunk is
 * not as it was read.
 */
export async function replaceChunk(
  trx: Trx,
  boxId: string,
  stored: StoredChunk,
  data: Uint8Array | null,
): Promise<boolean> {
  const current = (await findChunk(trx, boxId, stored.start))?.data
  if (current === undefined || Buffer.compare(current, stored.data) !== 0) return false
  if (data !== null) await writeChunk(trx, { box_id: boxId, start: stored.start, data })
  else
    await trx
      .deleteFrom('process_chunks')
      .where('box_id', '=', boxId)
      .where('start', '=', stored.start)
      .execute()
  return true
}

export const deleteChunksOfBox = (trx: Trx, boxId: string) =>
  trx.deleteFrom('process_chunks').where('box_id', '=', boxId).execute()
