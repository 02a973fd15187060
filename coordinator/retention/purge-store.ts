// Deletes rows of a workspace from the tables that the modules name.
import { sql } from 'kysely'
import type { Trx } from '../db/transaction.ts'
import type { WorkspaceTable } from '../http/module.ts'

/** Returns the number of deleted rows: at most `limit`, or all of a table without a key. */
export async function deleteSomeRows(
  trx: Trx,
  { table, key }: WorkspaceTable,
  workspaceId: string,
  limit: number,
): Promise<number> {
  const from = sql.table(table)
  const ofWorkspace = sql`workspace_id = ${workspaceId}`
  const { numAffectedRows } = await (key === null
    ? sql`delete from ${from} where ${ofWorkspace}`
    : sql`delete from ${from} where ${key === 'id' ? sql`` : sql`${ofWorkspace} and `}${sql.ref(key)} in
        (select ${sql.ref(key)} from ${from} where ${ofWorkspace} limit ${limit})`
  ).execute(trx)
  return Number(numAffectedRows ?? 0)
}
