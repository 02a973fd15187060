// Queries on the rollouts of agent builds, and on the agents of boxes.
import type { Db } from '../db/open.ts'
import type { AgentRolloutRow } from '../db/schema.ts'
import type { Trx } from '../db/transaction.ts'

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

export const findAgent = (db: Db | Trx, boxId: string) =>
  db
    .selectFrom('boxes')
    .select(['workspace_id', 'agent_failure', 'agent_failure_dismissed'])
    .where('id', '=', boxId)
    .executeTakeFirst()

export async function updateFailure(trx: Trx, boxId: string, failure: string | null): Promise<void> {
  await trx
    .updateTable('boxes')
    .set({ agent_failure: failure, agent_failure_dismissed: 0 })
    .where('id', '=', boxId)
    .execute()
}

/** Failed builds are offered again. */
export async function dismissFailures(trx: Trx, workspaceId: string): Promise<void> {
  await trx
    .updateTable('boxes')
    .set({ agent_failure_dismissed: 1 })
    .where('workspace_id', '=', workspaceId)
    .where('agent_failure', 'is not', null)
    .execute()
}

/** The boxes that are not deleted, newest first. */
export const listAgents = (db: Db, workspaceId: string) =>
  db
    .selectFrom('boxes')
    .select(['id', 'hostname', 'agent_version'])
    .where('workspace_id', '=', workspaceId)
    .where('desired_state', '!=', 'terminated')
    .orderBy('created_at', 'desc')
    .orderBy('id', 'desc')
    .execute()
