// Queries on workspaces, users and API keys.

import type { Db } from '../db/open.ts'
import { prepareQuery } from '../db/prepared-queries.ts'
import type { ApiKeyRow, UserRow, WorkspaceRow } from '../db/schema.ts'
import type { Trx } from '../db/transaction.ts'

export type KeyWithRole = ApiKeyRow & { role: UserRow['role'] | null }

/** Finds a key by its hash. Runs for every request. */
export const prepareKeyQuery = (db: Db) =>
  prepareQuery<KeyWithRole, [hash: string]>(db, (database) =>
    database
      .selectFrom('api_keys')
      .leftJoin('users', 'users.id', 'api_keys.user_id')
      .selectAll('api_keys')
      .select('users.role as role')
      .where('api_keys.hash', '=', ''),
  )

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
    .orderBy('created_at')
    .orderBy('id')
    .limit(1)
    .executeTakeFirst()

export const insertWorkspace = (trx: Trx, row: WorkspaceRow) =>
  trx.insertInto('workspaces').values(row).execute()
export const insertUser = (trx: Trx, row: UserRow) => trx.insertInto('users').values(row).execute()
export const insertKey = (trx: Trx, row: ApiKeyRow) => trx.insertInto('api_keys').values(row).execute()
