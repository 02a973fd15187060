// Queries of the erasure of a workspace.
import type { Db } from '../db/open.ts'
import type { BoxRow } from '../db/schema.ts'
import type { Trx } from '../db/transaction.ts'

export const findWorkspace = (db: Db, id: string) =>
  db.selectFrom('workspaces').select('id').where('id', '=', id).executeTakeFirst()

type Position = Pick<BoxRow, 'id' | 'created_at'>

/** The boxes of a workspace, oldest first. Includes terminated boxes, whose history is still readable. */
export function listBoxes(
  db: Db,
  workspaceId: string,
  after: Position | undefined,
  limit: number,
): Promise<Position[]> {
  let query = db.selectFrom('boxes').select(['id', 'created_at']).where('workspace_id', '=', workspaceId)
  if (after !== undefined)
    query = query
      .where('created_at', '>=', after.created_at)
      .where((eb) => eb.or([eb('created_at', '>', after.created_at), eb('id', '>', after.id)]))
  return query.orderBy('created_at').orderBy('id').limit(limit).execute()
}

/** Restarts an erasure in progress: data may have been stored since it began. */
export async function requestErasure(trx: Trx, workspaceId: string, now: number): Promise<void> {
  await trx
    .insertInto('schedules')
    .values({ kind: 'erase', target_id: workspaceId, due_at: now })
    .onConflict((conflict) => conflict.columns(['target_id', 'kind']).doUpdateSet({ due_at: now }))
    .execute()
}
