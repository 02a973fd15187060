// Reads and writes rows of users. Of the other directories, only the purge of a workspace writes the table.
import type { Updateable } from 'kysely'
import type { Role } from '../../../shared/api/account.ts'
import type { Db } from '../../db/open.ts'
import type { UserRow } from '../../db/schema.ts'
import type { Trx } from '../../db/transaction.ts'

export const findUserById = (db: Db | Trx, id: string): Promise<UserRow | undefined> =>
  db.selectFrom('users').selectAll().where('id', '=', id).executeTakeFirst()

/** The first owner of the workspace who has joined it. */
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

/** The first owner of the workspace, also one who has not joined it. */
export async function findFirstOwnerId(db: Db | Trx, workspaceId: string): Promise<string | undefined> {
  const row = await db
    .selectFrom('users')
    .select('id')
    .where('workspace_id', '=', workspaceId)
    .where('role', '=', 'owner')
    .where('removed_at', 'is', null)
    .orderBy('created_at')
    .orderBy('id')
    .limit(1)
    .executeTakeFirst()
  return row?.id
}

export type MailedOwner = { id: string; email: string }

/** The owners who have joined the workspace and have an email address. */
export async function listOwners(db: Db | Trx, workspaceId: string): Promise<MailedOwner[]> {
  const rows = await db
    .selectFrom('users')
    .select(['id', 'email'])
    .where('workspace_id', '=', workspaceId)
    .where('role', '=', 'owner')
    .where('joined_at', 'is not', null)
    .where('removed_at', 'is', null)
    .orderBy('created_at')
    .execute()
  return rows.flatMap(({ id, email }) => (email === null ? [] : [{ id, email }]))
}

/** The role of a user; undefined: the user has been removed. */
export async function findRole(db: Db | Trx, userId: string): Promise<Role | undefined> {
  const query = db.selectFrom('users').select('role').where('id', '=', userId)
  return (await query.where('removed_at', 'is', null).executeTakeFirst())?.role
}

/** By id. Includes removed users. */
export async function listUserNames(
  db: Db,
  ids: readonly string[],
): Promise<Map<string, Pick<UserRow, 'name' | 'email'>>> {
  if (ids.length === 0) return new Map()
  const rows = await db.selectFrom('users').select(['id', 'name', 'email']).where('id', 'in', ids).execute()
  return new Map(rows.map(({ id, name, email }) => [id, { name, email }]))
}

export const insertUser = (trx: Trx, row: UserRow) => trx.insertInto('users').values(row).execute()

/** false: a member of the workspace has the same email address. */
export async function insertMember(trx: Trx, row: UserRow): Promise<boolean> {
  const { numInsertedOrUpdatedRows } = await trx
    .insertInto('users')
    .values(row)
    .onConflict((conflict) => conflict.doNothing())
    .executeTakeFirstOrThrow()
  return numInsertedOrUpdatedRows === 1n
}

export const updateUser = (trx: Trx, id: string, changes: Updateable<UserRow>) =>
  trx.updateTable('users').set(changes).where('id', '=', id).execute()

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

/** The members cannot sign in any more, and their credentials are not accepted. Returns when that was done first. */
export async function removeMembers(trx: Trx, workspaceId: string, now: number): Promise<number> {
  await trx
    .updateTable('users')
    .set({ removed_at: now })
    .where('workspace_id', '=', workspaceId)
    .where('removed_at', 'is', null)
    .execute()
  const { removedAt } = await trx
    .selectFrom('users')
    .select(({ fn }) => fn.max('removed_at').as('removedAt'))
    .where('workspace_id', '=', workspaceId)
    .executeTakeFirstOrThrow()
  return removedAt ?? now
}
