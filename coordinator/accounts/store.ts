// Queries that create, verify and delete accounts.
import type { ApiKeyRow, UserRow, WorkspaceRow } from '../db/schema.ts'
import { forUpdate, type Trx } from '../db/transaction.ts'

export const insertWorkspace = (trx: Trx, row: WorkspaceRow) =>
  trx.insertInto('workspaces').values(row).execute()
export const insertUser = (trx: Trx, row: UserRow) => trx.insertInto('users').values(row).execute()
export const insertKey = (trx: Trx, row: ApiKeyRow) => trx.insertInto('api_keys').values(row).execute()

type UnverifiedKey = Pick<ApiKeyRow, 'id' | 'workspace_id' | 'user_id'>

/** The key while its email address is not confirmed. */
export const lockUnverifiedKey = (trx: Trx, id: string): Promise<UnverifiedKey | undefined> =>
  forUpdate(
    trx,
    trx
      .selectFrom('api_keys')
      .select(['id', 'workspace_id', 'user_id'])
      .where('id', '=', id)
      .where('unverified_since', 'is not', null),
  ).executeTakeFirst()

/** Sets the confirmed email address of the owner. */
export async function verifyKey(
  trx: Trx,
  { id, user_id }: UnverifiedKey,
  { email, now }: { email: string; now: number },
): Promise<void> {
  await trx.updateTable('api_keys').set({ unverified_since: null }).where('id', '=', id).execute()
  await trx.updateTable('users').set({ email, joined_at: now }).where('id', '=', user_id).execute()
}

/** Locks the keys: without the lock, a key that is verified meanwhile would be deleted. */
export const lockUnverifiedKeys = (
  trx: Trx,
  { unverifiedBefore, limit }: { unverifiedBefore: number; limit: number },
): Promise<UnverifiedKey[]> =>
  forUpdate(
    trx,
    trx
      .selectFrom('api_keys')
      .select(['id', 'workspace_id', 'user_id'])
      .where('unverified_since', '<=', unverifiedBefore)
      .orderBy('unverified_since')
      .limit(limit),
  ).execute()

/** Deletes a workspace that has never been used: nothing but these tables has rows of it. */
export async function deleteUnusedWorkspace(trx: Trx, workspaceId: string): Promise<void> {
  for (const table of ['audit_log', 'audit_heads', 'api_keys', 'users'] as const)
    await trx.deleteFrom(table).where('workspace_id', '=', workspaceId).execute()
  await trx.deleteFrom('workspaces').where('id', '=', workspaceId).execute()
}
