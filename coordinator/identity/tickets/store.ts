// Queries on terminal tickets.
import type { Db } from '../../db/open.ts'
import { prepareQuery } from '../../db/prepared-queries.ts'
import type { TicketRow, UserRow } from '../../db/schema.ts'
import type { Trx } from '../../db/transaction.ts'

export type TicketWithUser = TicketRow & { role: UserRow['role']; user_removed_at: number | null }

/** Finds a ticket by its hash. No row when its session has ended. Runs for every request with a ticket. */
export const prepareTicketQuery = (db: Db) =>
  prepareQuery<TicketWithUser, [hash: string]>(db, (database) =>
    database
      .selectFrom('tickets')
      .innerJoin('sessions', 'sessions.id', 'tickets.session_id')
      .innerJoin('users', 'users.id', 'tickets.user_id')
      .selectAll('tickets')
      .select(['users.role as role', 'users.removed_at as user_removed_at'])
      .where('tickets.hash', '=', ''),
  )

/** Whether the session has created a ticket since this time. Expired tickets are kept for a day. */
export async function hasTicketSince(
  trx: Trx,
  { userId, sessionId, since }: { userId: string; sessionId: string; since: number },
): Promise<boolean> {
  const row = await trx
    .selectFrom('tickets')
    .select('id')
    .where('user_id', '=', userId)
    .where('session_id', '=', sessionId)
    .where('created_at', '>', since)
    .limit(1)
    .executeTakeFirst()
  return row !== undefined
}

export const insertTicket = (trx: Trx, row: TicketRow) => trx.insertInto('tickets').values(row).execute()

/** Returns the number of deleted tickets, at most `limit`. */
export async function deleteTicketsExpiredBefore(trx: Trx, before: number, limit: number): Promise<number> {
  const expired = await trx
    .selectFrom('tickets')
    .select('id')
    .where('expires_at', '<', before)
    .orderBy('expires_at')
    .limit(limit)
    .execute()
  if (expired.length === 0) return 0
  const ids = expired.map(({ id }) => id)
  await trx.deleteFrom('tickets').where('id', 'in', ids).execute()
  return ids.length
}

export const deleteTicketsOfUser = (trx: Trx, userId: string) =>
  trx.deleteFrom('tickets').where('user_id', '=', userId).execute()
