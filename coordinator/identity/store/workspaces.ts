// Reads and writes rows of workspaces. No other directory writes the table.
import type { Updateable } from 'kysely'
import type { Db } from '../../db/open.ts'
import type { WorkspaceRow } from '../../db/schema.ts'
import type { Trx } from '../../db/transaction.ts'

/** The workspace of the coordinator's first start. */
export const findFirstWorkspace = (db: Db | Trx): Promise<WorkspaceRow | undefined> =>
  db.selectFrom('workspaces').selectAll().orderBy('created_at').orderBy('id').limit(1).executeTakeFirst()

/** The owners of the first workspace operate the coordinator. */
export const isFirstWorkspace = async (db: Db | Trx, id: string): Promise<boolean> =>
  (await findFirstWorkspace(db))?.id === id

export const findWorkspace = (db: Db | Trx, id: string): Promise<WorkspaceRow | undefined> =>
  db.selectFrom('workspaces').selectAll().where('id', '=', id).executeTakeFirst()

export async function listWorkspaceIds(db: Db): Promise<string[]> {
  const rows = await db.selectFrom('workspaces').select('id').orderBy('id').execute()
  return rows.map(({ id }) => id)
}

export const insertWorkspace = (trx: Trx, row: WorkspaceRow) =>
  trx.insertInto('workspaces').values(row).execute()

export const updateWorkspace = (
  trx: Trx,
  id: string,
  changes: Updateable<WorkspaceRow>,
): Promise<WorkspaceRow> =>
  trx.updateTable('workspaces').set(changes).where('id', '=', id).returningAll().executeTakeFirstOrThrow()

export const deleteWorkspace = (trx: Trx, id: string) =>
  trx.deleteFrom('workspaces').where('id', '=', id).execute()
