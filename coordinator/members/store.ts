// Queries on the members of a workspace: its users that are not removed.
import type { Updateable } from 'kysely'
import type { Db } from '../db/open.ts'
import type { UserRow } from '../db/schema.ts'
import { forUpdate, type Trx } from '../db/transaction.ts'

export type MemberRow = UserRow & { key_used_at: number | null }

const selectMembers = (db: Db | Trx, workspaceId: string) =>
  db
    .selectFrom('users')
    .selectAll('users')
    .select((eb) =>
      eb
        .selectFrom('api_keys')
        .select(({ fn }) => fn.max('api_keys.last_used_at').as('at'))
        .whereRef('api_keys.user_id', '=', 'users.id')
        .as('key_used_at'),
    )
    .where('users.workspace_id', '=', workspaceId)
    .where('users.removed_at', 'is', null)

/** Oldest first. */
export const listMembers = (db: Db | Trx, workspaceId: string): Promise<MemberRow[]> =>
  selectMembers(db, workspaceId).orderBy('users.created_at').orderBy('users.id').execute()

export const findMember = (db: Db | Trx, workspaceId: string, id: string): Promise<MemberRow | undefined> =>
  selectMembers(db, workspaceId).where('users.id', '=', id).executeTakeFirst()

export async function isRemovedMember(trx: Trx, workspaceId: string, id: string): Promise<boolean> {
  const row = await trx
    .selectFrom('users')
    .select('removed_at')
    .where('id', '=', id)
    .where('workspace_id', '=', workspaceId)
    .executeTakeFirst()
  return row !== undefined && row.removed_at !== null
}

/** Whether another owner than this user has joined the workspace. */
export async function hasOtherOwner(trx: Trx, workspaceId: string, userId: string): Promise<boolean> {
  const row = await trx
    .selectFrom('users')
    .select('id')
    .where('workspace_id', '=', workspaceId)
    .where('role', '=', 'owner')
    .where('joined_at', 'is not', null)
    .where('removed_at', 'is', null)
    .where('id', '!=', userId)
    .limit(1)
    .executeTakeFirst()
  return row !== undefined
}

/** When the n-th newest user of the workspace was created, removed ones included, if that was after the instant. */
export async function findCreationOfNewestUser(
  trx: Trx,
  workspaceId: string,
  n: number,
  after: number,
): Promise<number | undefined> {
  const row = await trx
    .selectFrom('users')
    .select('created_at')
    .where('workspace_id', '=', workspaceId)
    .where('created_at', '>', after)
    .orderBy('created_at', 'desc')
    .offset(n - 1)
    .limit(1)
    .executeTakeFirst()
  return row?.created_at
}

/** false: a member of the workspace has the same email address. */
export async function insertUser(trx: Trx, row: UserRow): Promise<boolean> {
  const { numInsertedOrUpdatedRows } = await trx
    .insertInto('users')
    .values(row)
    .onConflict((conflict) => conflict.doNothing())
    .executeTakeFirstOrThrow()
  return numInsertedOrUpdatedRows === 1n
}

export async function hasMemberWithEmail(trx: Trx, workspaceId: string, email: string): Promise<boolean> {
  const row = await trx
    .selectFrom('users')
    .select('id')
    .where('email', '=', email)
    .where('workspace_id', '=', workspaceId)
    .where('removed_at', 'is', null)
    .executeTakeFirst()
  return row !== undefined
}

export const updateUser = (trx: Trx, id: string, changes: Updateable<UserRow>) =>
  trx.updateTable('users').set(changes).where('id', '=', id).execute()

/** Locks the boxes in the order of their ids. A box is locked before its workspace, never after it. */
export async function restrictBoxesOf(trx: Trx, workspaceId: string, userId: string): Promise<void> {
  const boxes = await forUpdate(
    trx,
    trx
      .selectFrom('boxes')
      .select('id')
      .where('workspace_id', '=', workspaceId)
      .where('owner_user_id', '=', userId)
      .where('terminated_at', 'is', null)
      .where('restricted', '=', 0)
      .orderBy('id'),
  ).execute()
  for (const { id } of boxes)
    await trx.updateTable('boxes').set({ restricted: 1 }).where('id', '=', id).execute()
}

/** Revokes the keys of the user, and ends the sessions and tickets. */
export async function revokeCredentials(trx: Trx, userId: string, now: number): Promise<void> {
  await trx
    .updateTable('api_keys')
    .set({ revoked_at: now })
    .where('user_id', '=', userId)
    .where('revoked_at', 'is', null)
    .execute()
  for (const table of ['tickets', 'sessions'] as const)
    await trx.deleteFrom(table).where('user_id', '=', userId).execute()
}
