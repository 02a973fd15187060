// Queries on operations.
import type { Db } from '../../db/open.ts'
import type { OperationRow } from '../../db/schema.ts'
import type { Trx } from '../../db/transaction.ts'

export const insertOperation = (trx: Trx, row: OperationRow) =>
  trx.insertInto('operations').values(row).execute()

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

export const updateOperation = (
  trx: Trx,
  id: string,
  changes: Pick<OperationRow, 'status'> & Partial<Pick<OperationRow, 'completed_at' | 'error'>>,
) => trx.updateTable('operations').set(changes).where('id', '=', id).execute()

export async function deleteFinishedBefore(db: Db | Trx, instant: number): Promise<number> {
  const { numDeletedRows } = await db
    .deleteFrom('operations')
    .where('completed_at', '<', instant)
    .executeTakeFirst()
  return Number(numDeletedRows)
}
