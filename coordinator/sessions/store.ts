// Queries on dashboard sessions, and on the users and workspaces of sessions.
import type { Db } from '../db/open.ts'
import { prepareQuery } from '../db/prepared-queries.ts'
import type { SessionRow, UserRow } from '../db/schema.ts'
import type { Trx } from '../db/transaction.ts'

export type SessionWithUser = SessionRow & { role: UserRow['role']; user_removed_at: number | null }

/** Finds a session by the hash of its cookie. Runs for every request of a session. */
export const prepareSessionQuery = (db: Db) =>
  prepareQuery<SessionWithUser, [hash: string]>(db, (database) =>
    database
      .selectFrom('sessions')
      .innerJoin('users', 'users.id', 'sessions.user_id')
      .selectAll('sessions')
      .select(['users.role as role', 'users.removed_at as user_removed_at'])
      .where('sessions.hash', '=', ''),
  )

export const insertSession = (trx: Trx, row: SessionRow) => trx.insertInto('sessions').values(row).execute()

export const findSessionById = (db: Db | Trx, id: string): Promise<SessionRow | undefined> =>
  db.selectFrom('sessions').selectAll().where('id', '=', id).executeTakeFirst()

/** With the role of its user, who may have been removed. */
export const findSessionByHash = (
  trx: Trx,
  hash: string,
): Promise<(SessionRow & { role: UserRow['role'] }) | undefined> =>
  trx
    .selectFrom('sessions')
    .innerJoin('users', 'users.id', 'sessions.user_id')
    .selectAll('sessions')
    .select('users.role')
    .where('sessions.hash', '=', hash)
    .executeTakeFirst()

/** Returns whether the session existed. */
export async function deleteSession(trx: Trx, id: string): Promise<boolean> {
  const { numDeletedRows } = await trx.deleteFrom('sessions').where('id', '=', id).executeTakeFirst()
  return numDeletedRows > 0n
}

/** Last used first. */
export const listSessionsOfUser = (db: Db | Trx, userId: string): Promise<SessionRow[]> =>
  db
    .selectFrom('sessions')
    .selectAll()
    .where('user_id', '=', userId)
    .orderBy('last_used_at', 'desc')
    .orderBy('id')
    .execute()

/** Locks the user before the session, in the order of the removal of a member. */
export async function storeUse(
  trx: Trx,
  session: Pick<SessionRow, 'id' | 'user_id' | 'last_used_at' | 'expires_at'>,
): Promise<void> {
  const { id, user_id, last_used_at, expires_at } = session
  await trx.updateTable('users').set({ last_active_at: last_used_at }).where('id', '=', user_id).execute()
  await trx.updateTable('sessions').set({ last_used_at, expires_at }).where('id', '=', id).execute()
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
export async function findFirstOwner(db: Db | Trx): Promise<Membership | undefined> {
  const workspace = await db
    .selectFrom('workspaces')
    .select('id')
    .orderBy('created_at')
    .orderBy('id')
    .limit(1)
    .executeTakeFirst()
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

export const updateUser = (
  trx: Trx,
  id: string,
  values: Partial<Pick<UserRow, 'name' | 'email' | 'joined_at' | 'last_active_at'>>,
) => trx.updateTable('users').set(values).where('id', '=', id).execute()

/** Returns the number of deleted sessions. */
export async function deleteExpiredSessions(trx: Trx, now: number, limit: number): Promise<number> {
  const rows = await trx
    .selectFrom('sessions')
    .select('id')
    .where('expires_at', '<=', now)
    .orderBy('expires_at')
    .limit(limit)
    .execute()
  for (const { id } of rows) await deleteSession(trx, id)
  return rows.length
}
