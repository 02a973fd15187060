// Reads whether a workspace has zero data retention.
import type { Db } from './open.ts'
import { prepareQuery, prepareTrxQuery } from './prepared-queries.ts'
import type { Trx } from './transaction.ts'

const findSetting = prepareTrxQuery<{ zero_data_retention: 0 | 1 }>((db) =>
  db.selectFrom('workspaces').select('zero_data_retention').where('id', '=', ''),
)

/**
 * The transaction must hold a lock that the erasure of stored data acquires too (the box, or the newest audit event), and must
 * call this function after acquiring it. Otherwise the erasure misses what the transaction stores.
 */
export async function hasZeroDataRetention(trx: Trx, workspaceId: string): Promise<boolean> {
  const [row] = await findSetting(trx, [workspaceId])
  return row?.zero_data_retention !== 0
}

/** Whether a workspace has zero data retention. Runs for every command. */
export const prepareRetentionQuery = (db: Db) =>
  prepareQuery<{ zero_data_retention: 0 | 1 }, [workspaceId: string]>(db, (database) =>
    database.selectFrom('workspaces').select('zero_data_retention').where('id', '=', ''),
  )
