// Queries on workspaces and users.
import type { Db } from '../db/open.ts'
import type { UserRow, WorkspaceRow } from '../db/schema.ts'
import type { Trx } from '../db/transaction.ts'

export const findFirstWorkspace = (db: Db | Trx): Promise<WorkspaceRow | undefined> =>
  db.selectFrom('workspaces').selectAll().orderBy('created_at').orderBy('id').limit(1).executeTakeFirst()

export const findWorkspaceById = (db: Db | Trx, id: string): Promise<WorkspaceRow | undefined> =>
  db.selectFrom('workspaces').selectAll().where('id', '=', id).executeTakeFirst()

export const findUserById = (db: Db | Trx, id: string): Promise<UserRow | undefined> =>
  db.selectFrom('users').selectAll().where('id', '=', id).executeTakeFirst()

export const findOwner = (db: Db | Trx, workspaceId: string): Promise<UserRow | undefined> =>
  db
    .selectFrom('users')
    .selectAll()
    .where('workspace_id', '=', workspaceId)
    .where('role', '=', 'owner')
    .where('joined_at', 'is not', null)
    .where('removed_at', 'is', null)
    .orderBy('created_at')
    .orderBy('id')
    .limit(1)
    .executeTakeFirst()

export const insertWorkspace = (trx: Trx, row: WorkspaceRow) =>
  trx.insertInto('workspaces').values(row).execute()
export const insertUser = (trx: Trx, row: UserRow) => trx.insertInto('users').values(row).execute()
