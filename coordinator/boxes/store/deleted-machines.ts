// Queries on enrolled machines whose boxes have been deleted.
import type { Db } from '../../db/open.ts'
import type { BoxRow, DeletedMachineRow } from '../../db/schema.ts'
import type { Trx } from '../../db/transaction.ts'

/** The agent of the machine uninstalls itself when it connects the next time. */
export async function insertDeletedMachine(
  trx: Trx,
  { id, agent_token_hash: agentTokenHash }: Pick<BoxRow, 'id' | 'agent_token_hash'>,
  now: number,
): Promise<void> {
  if (agentTokenHash === null) return
  await trx
    .insertInto('deleted_machines')
    .values({ box_id: id, agent_token_hash: agentTokenHash, deleted_at: now })
    .onConflict((conflict) => conflict.doNothing())
    .execute()
}

export const listDeletedMachines = (
  db: Db,
  boxIds: readonly string[],
): Promise<Pick<DeletedMachineRow, 'box_id' | 'agent_token_hash'>[]> =>
  db
    .selectFrom('deleted_machines')
    .select(['box_id', 'agent_token_hash'])
    .where('box_id', 'in', boxIds)
    .execute()

/** Returns the number of deleted rows, at most `limit`. */
export async function forgetDeletedMachines(trx: Trx, before: number, limit: number): Promise<number> {
  const expired = trx
    .selectFrom('deleted_machines')
    .select('box_id')
    .where('deleted_at', '<', before)
    .orderBy('deleted_at')
    .limit(limit)
  const { numDeletedRows } = await trx
    .deleteFrom('deleted_machines')
    .where('box_id', 'in', expired)
    .executeTakeFirst()
  return Number(numDeletedRows)
}
