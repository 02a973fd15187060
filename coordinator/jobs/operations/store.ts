// Queries on operations.
import type { Db } from '../../db/open.ts'
import { recordRowChange } from '../../db/row-changes.ts'
import type { OperationRow } from '../../db/schema.ts'
import type { Trx } from '../../db/transaction.ts'

export async function insertOperation(trx: Trx, row: OperationRow): Promise<void> {
  recordRowChange(trx, { table: 'operations', id: row.id })
  await trx.insertInto('operations').values(row).execute()
}

export const findOperationById = (db: Db | Trx, id: string): Promise<OperationRow | undefined> =>
  db.selectFrom('operations').selectAll().where('id', '=', id).executeTakeFirst()

export const selectLatestOperation = (
  db: Db | Trx,
  kind: OperationRow['kind'],
  targetId: string,
): Promise<OperationRow | undefined> =>
  db
    .selectFrom('operations')
    .selectAll()
    .where('target_id', '=', targetId)
    .where('kind', '=', kind)
    .orderBy('requested_at', 'desc')
    .limit(1)
    .executeTakeFirst()

export async function updateOperation(
  trx: Trx,
  id: string,
  changes: Pick<OperationRow, 'status'> & Partial<Pick<OperationRow, 'completed_at' | 'error'>>,
): Promise<void> {
  recordRowChange(trx, { table: 'operations', id })
  await trx.updateTable('operations').set(changes).where('id', '=', id).execute()
}

export const listOperationsById = (db: Db, ids: readonly string[]): Promise<OperationRow[]> =>
  db.selectFrom('operations').selectAll().where('id', 'in', ids).execute()

/** The operations of the workspace that have not finished, oldest first. */
export const listOperationsInProgress = (db: Db, workspaceId: string): Promise<OperationRow[]> =>
  db
    .selectFrom('operations')
    .selectAll()
    .where('workspace_id', '=', workspaceId)
    .where('completed_at', 'is', null)
    .orderBy('requested_at')
    .orderBy('id')
    .execute()

export async function deleteFinishedBefore(db: Db | Trx, instant: number): Promise<number> {
  const { numDeletedRows } = await db
    .deleteFrom('operations')
    .where('completed_at', '<', instant)
    .executeTakeFirst()
  return Number(numDeletedRows)
}
