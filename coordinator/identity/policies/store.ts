// Queries on the policies of workspaces.
import type { PolicyName } from '../../../shared/api/policies.ts'
import type { Db } from '../../db/open.ts'
import type { PolicyRow } from '../../db/schema.ts'
import type { Trx } from '../../db/transaction.ts'

export const findPolicy = (db: Db | Trx, workspaceId: string): Promise<PolicyRow | undefined> =>
  db.selectFrom('policies').selectAll().where('workspace_id', '=', workspaceId).executeTakeFirst()

/** The workspaces that have the policy. Reads the policies of all workspaces. */
export async function listWorkspacesWithPolicy(db: Db, name: PolicyName): Promise<string[]> {
  // A row has only the policies that are set.
  const rows = await db
    .selectFrom('policies')
    .select('workspace_id')
    .where('policy', 'like', `%"${name}":%`)
    .execute()
  return rows.map(({ workspace_id }) => workspace_id)
}

export async function upsertPolicy(trx: Trx, row: PolicyRow): Promise<void> {
  const { workspace_id: _workspaceId, ...changes } = row
  await trx
    .insertInto('policies')
    .values(row)
    .onConflict((conflict) => conflict.column('workspace_id').doUpdateSet(changes))
    .execute()
}
