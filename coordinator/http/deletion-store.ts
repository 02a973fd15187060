// SQL of the deletions table: one row per deleted resource, for 30 days.
import { deleteInBatches } from '../db/delete-in-batches.ts'
import type { Db } from '../db/open.ts'
import type { DeletionRow } from '../db/schema.ts'
import type { Trx } from '../db/transaction.ts'

/** Rows per transaction. */
const BATCH_SIZE = 500

/** A later deletion of the same resource replaces an earlier one. */
export const upsertDeletion = (trx: Trx, row: DeletionRow) =>
  trx
    .insertInto('deletions')
    .values(row)
    .onConflict((conflict) =>
      conflict.columns(['workspace_id', 'resource_id']).doUpdateSet({ deleted_at: row.deleted_at }),
    )
    .execute()

export const findDeletion = (
  db: Db | Trx,
  workspaceId: string,
  resourceId: string,
): Promise<Pick<DeletionRow, 'deleted_at'> | undefined> =>
  db
    .selectFrom('deletions')
    .select('deleted_at')
    .where('workspace_id', '=', workspaceId)
    .where('resource_id', '=', resourceId)
    .executeTakeFirst()

/**
 * Deletes the rows of deletions at or before the instant. Returns their number.
 * @param signal aborts between two transactions
 */
export const deleteDeletionsBefore = (db: Db, deletedBefore: number, signal: AbortSignal): Promise<number> =>
  deleteInBatches(
    db,
    async (trx) => {
      const rows = await trx
        .selectFrom('deletions')
        .select(['workspace_id', 'resource_id'])
        .where('deleted_at', '<=', deletedBefore)
        .orderBy('deleted_at')
        .limit(BATCH_SIZE)
        .execute()
      for (const { workspace_id, resource_id } of rows)
        await trx
          .deleteFrom('deletions')
          .where('workspace_id', '=', workspace_id)
          .where('resource_id', '=', resource_id)
          .execute()
      return rows.length
    },
    signal,
  )
