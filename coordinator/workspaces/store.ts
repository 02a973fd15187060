// Queries on workspaces, and on the users that create them.
import type { Updateable } from 'kysely'
import type { Db } from '../db/open.ts'
import type { UserRow, WorkspaceRow } from '../db/schema.ts'
import type { Trx } from '../db/transaction.ts'

export const findWorkspace = (db: Db | Trx, id: string): Promise<WorkspaceRow | undefined> =>
  db.selectFrom('workspaces').selectAll().where('id', '=', id).executeTakeFirst()

/** The workspace of the coordinator's first start. */
export async function findFirstWorkspaceId(db: Db | Trx): Promise<string | undefined> {
  const row = await db
    .selectFrom('workspaces')
    .select('id')
    .orderBy('created_at')
    .orderBy('id')
    .limit(1)
    .executeTakeFirst()
  return row?.id
}

export const insertWorkspace = (trx: Trx, row: WorkspaceRow) =>
  trx.insertInto('workspaces').values(row).execute()

export const updateWorkspace = (
  trx: Trx,
  id: string,
  changes: Updateable<WorkspaceRow>,
): Promise<WorkspaceRow> =>
  trx.updateTable('workspaces').set(changes).where('id', '=', id).returningAll().executeTakeFirstOrThrow()

export const findUser = (trx: Trx, id: string): Promise<UserRow | undefined> =>
  trx.selectFrom('users').selectAll().where('id', '=', id).executeTakeFirst()

export const insertUser = (trx: Trx, row: UserRow) => trx.insertInto('users').values(row).execute()

/** The workspaces in which the person is an owner. */
export async function countOwnedWorkspaces(trx: Trx, email: string): Promise<number> {
  const { count } = await trx
    .selectFrom('users')
    .select(({ fn }) => fn.countAll().as('count'))
    .where('email', '=', email)
    .where('role', '=', 'owner')
    .where('removed_at', 'is', null)
    .executeTakeFirstOrThrow()
  return Number(count)
}
