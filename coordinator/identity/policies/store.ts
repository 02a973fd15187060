// Queries on the policies of workspaces.
import type { Db } from '../../db/open.ts'
import type { PolicyRow } from '../../db/schema.ts'
import type { Trx } from '../../db/transaction.ts'

export const findPolicy = (db: Db | Trx, workspaceId: string): Promise<PolicyRow | undefined> =>
  db.selectFrom('policies').selectAll().where('workspace_id', '=', workspaceId).executeTakeFirst()

export async function upsertPolicy(trx: Trx, row: PolicyRow): Promise<void> {
  const { workspace_id: _workspaceId, ...changes } = row
  await trx
    .insertInto('policies')
    .values(row)
    .onConflict((conflict) => conflict.column('workspace_id').doUpdateSet(changes))
    .execute()
}
