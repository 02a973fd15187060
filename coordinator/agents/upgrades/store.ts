// Queries on the rollouts of agent builds.
import type { Db } from '../../db/open.ts'
import type { AgentRolloutRow } from '../../db/schema.ts'
import type { Trx } from '../../db/transaction.ts'

export const findRollout = (db: Db | Trx, workspaceId: string): Promise<AgentRolloutRow | undefined> =>
  db.selectFrom('agent_rollouts').selectAll().where('workspace_id', '=', workspaceId).executeTakeFirst()

export async function upsertRollout(trx: Trx, row: AgentRolloutRow): Promise<void> {
  const { workspace_id: _workspaceId, ...changes } = row
  await trx
    .insertInto('agent_rollouts')
    .values(row)
    .onConflict((conflict) => conflict.column('workspace_id').doUpdateSet(changes))
    .execute()
}
