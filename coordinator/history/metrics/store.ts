// Queries on chunks of metrics. All of them read only the rows of the named boxes, except those of the pruner.

import { sql } from 'kysely'
import type { MetricsResolution } from '../../../shared/api/metrics.ts'
import type { Db } from '../../db/open.ts'
import { prepareWrite } from '../../db/prepared-queries.ts'
import type { MetricChunkRow } from '../../db/schema.ts'
import type { Trx } from '../../db/transaction.ts'

export type { MetricChunkRow }

export const findChunk = (
  db: Db | Trx,
  boxId: string,
  res: MetricsResolution,
  start: number,
): Promise<MetricChunkRow | undefined> =>
  db
    .selectFrom('metric_chunks')
    .selectAll()
    .where('box_id', '=', boxId)
    .where('res', '=', res)
    .where('start', '=', start)
    .executeTakeFirst()

/** Newest first. @param range epoch seconds; includes `from`, excludes `to` */
export const listChunks = (
  db: Db | Trx,
  boxIds: readonly string[],
  res: MetricsResolution,
  { from, to }: { from: number; to: number },
): Promise<MetricChunkRow[]> =>
  db
    .selectFrom('metric_chunks')
    .selectAll()
    .where('box_id', 'in', boxIds)
    .where('res', '=', res)
    .where('start', '>=', from)
    .where('start', '<', to)
    .orderBy('start', 'desc')
    .execute()

/** The chunks of samples that the rollups do not contain yet, newest first. */
export const listPendingChunks = (db: Db | Trx, boxIds: readonly string[]): Promise<MetricChunkRow[]> =>
  db
    .selectFrom('metric_chunks')
    .selectAll()
    .where('box_id', 'in', boxIds)
    // A literal, not a parameter: otherwise the planner cannot use the partial index.
    .where('pending_rollup', '=', sql.lit(1))
    .orderBy('start', 'desc')
    .execute()

const executeUpsert = prepareWrite((db) =>
  db
    .insertInto('metric_chunks')
    .values({ box_id: '', res: 0, start: 0, pending_rollup: 0, data: Buffer.from('') })
    .onConflict((conflict) =>
      conflict.columns(['box_id', 'res', 'start']).doUpdateSet((excluded) => ({
        pending_rollup: excluded.ref('excluded.pending_rollup'),
        data: excluded.ref('excluded.data'),
      })),
    ),
)

export const writeChunk = (trx: Trx, row: MetricChunkRow): Promise<number> =>
  executeUpsert(trx, [row.box_id, row.res, row.start, row.pending_rollup, row.data])

/** Deletes chunks that start before the instant, in epoch seconds. Returns their number, at most `limit`. */
export async function deleteChunksBefore(
  trx: Trx,
  { res, before, limit }: { res: MetricsResolution; before: number; limit: number },
): Promise<number> {
  const { numDeletedRows } = await trx
    .deleteFrom('metric_chunks')
    .where((eb) =>
      eb(
        eb.refTuple('box_id', 'res', 'start'),
        'in',
        eb
          .selectFrom('metric_chunks')
          .select(['box_id', 'res', 'start'])
          .where('res', '=', res)
          .where('start', '<', before)
          // The condition of the index by age.
          .where(sql<boolean>`pending_rollup < 2`)
          .orderBy('start')
          .limit(limit)
          .$asTuple('box_id', 'res', 'start'),
      ),
    )
    .executeTakeFirst()
  return Number(numDeletedRows)
}

export const deleteChunksOfBox = (trx: Trx, boxId: string) =>
  trx.deleteFrom('metric_chunks').where('box_id', '=', boxId).execute()
