// Queries on dashboard sessions.
import type { Db } from '../../db/open.ts'
import { prepareQuery } from '../../db/prepared-queries.ts'
import type { SessionRow, UserRow } from '../../db/schema.ts'
import type { Trx } from '../../db/transaction.ts'

export type SessionWithUser = SessionRow & { role: UserRow['role']; user_removed_at: number | null }

const selectSessionWithUser = (db: Db | Trx) =>
  db
    .selectFrom('sessions')
    .innerJoin('users', 'users.id', 'sessions.user_id')
    .selectAll('sessions')
    .select(['users.role as role', 'users.removed_at as user_removed_at'])

/** Finds a session by the hash of its cookie. Runs for every request of a session. */
export const prepareSessionQuery = (db: Db) =>
  prepareQuery<SessionWithUser, [hash: string]>(db, (database) =>
    selectSessionWithUser(database).where('sessions.hash', '=', ''),
  )

/** Finds a session by its id. Runs for every request of a viewer of a share. */
export const prepareSessionByIdQuery = (db: Db) =>
  prepareQuery<SessionWithUser, [id: string]>(db, (database) =>
    selectSessionWithUser(database).where('sessions.id', '=', ''),
  )

export const findSessionWithUser = (trx: Trx, id: string): Promise<SessionWithUser | undefined> =>
  selectSessionWithUser(trx).where('sessions.id', '=', id).executeTakeFirst()

export const insertSession = (trx: Trx, row: SessionRow) => trx.insertInto('sessions').values(row).execute()

export const findSessionById = (db: Db | Trx, id: string): Promise<SessionRow | undefined> =>
  db.selectFrom('sessions').selectAll().where('id', '=', id).executeTakeFirst()

/** The user may have been removed. */
export const findSessionByHash = (trx: Trx, hash: string): Promise<SessionWithUser | undefined> =>
  selectSessionWithUser(trx).where('sessions.hash', '=', hash).executeTakeFirst()

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

/** The addresses from which a person has signed in. */
export async function listSessionAddresses(db: Db | Trx, email: string): Promise<(string | null)[]> {
  const rows = await db
    .selectFrom('sessions')
    .innerJoin('users', 'users.id', 'sessions.user_id')
    .select('sessions.address')
    .distinct()
    .where('users.email', '=', email)
    .where('users.removed_at', 'is', null)
    .execute()
  return rows.map(({ address }) => address)
}

export const storeUse = (
  trx: Trx,
  { id, last_used_at, expires_at }: Pick<SessionRow, 'id' | 'last_used_at' | 'expires_at'>,
) => trx.updateTable('sessions').set({ last_used_at, expires_at }).where('id', '=', id).execute()

export const deleteSessionsOfUser = (trx: Trx, userId: string) =>
  trx.deleteFrom('sessions').where('user_id', '=', userId).execute()

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
