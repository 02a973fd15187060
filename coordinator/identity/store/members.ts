// Reads the members of a workspace: its users that are not removed.
import type { Db } from '../../db/open.ts'
import type { UserRow } from '../../db/schema.ts'
import type { Trx } from '../../db/transaction.ts'
import { findFirstWorkspace } from './workspaces.ts'

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

export const findMemberByEmail = (
  db: Db | Trx,
  workspaceId: string,
  email: string,
): Promise<MemberRow | undefined> =>
  selectMembers(db, workspaceId).where('users.email', '=', email).executeTakeFirst()

/** Whether a member of any workspace has an email address, with which people sign in. */
export async function hasAnyEmail(db: Db): Promise<boolean> {
  const row = await db
    .selectFrom('users')
    .select('id')
    .where('email', 'is not', null)
    .where('removed_at', 'is', null)
    .limit(1)
    .executeTakeFirst()
  return row !== undefined
}

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

/** Returns when the n-th newest user of the workspace was created, removed ones included, if that was after the instant. */
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

export type Membership = UserRow & { workspace_name: string }

const selectMemberships = (db: Db | Trx) =>
  db
    .selectFrom('users')
    .innerJoin('workspaces', 'workspaces.id', 'users.workspace_id')
    .selectAll('users')
    .select('workspaces.name as workspace_name')
    .where('users.removed_at', 'is', null)

/** The users of a person, one per workspace. */
export const listMemberships = (db: Db | Trx, email: string): Promise<Membership[]> =>
  selectMemberships(db).where('users.email', '=', email).execute()

export const findMembership = (db: Db | Trx, userId: string): Promise<Membership | undefined> =>
  selectMemberships(db).where('users.id', '=', userId).executeTakeFirst()

/** The first owner of the first workspace. The sign-in must not accept the invitation of another owner. */
export async function findFirstOwnerMembership(db: Db | Trx): Promise<Membership | undefined> {
  const workspace = await findFirstWorkspace(db)
  if (workspace === undefined) return undefined
  return selectMemberships(db)
    .where('users.workspace_id', '=', workspace.id)
    .where('users.role', '=', 'owner')
    .where('users.joined_at', 'is not', null)
    .orderBy('users.created_at')
    .orderBy('users.id')
    .limit(1)
    .executeTakeFirst()
}
