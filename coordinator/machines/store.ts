// Queries on the tokens that enroll machines.
import type { Updateable } from 'kysely'
import { lockWorkspace } from '../db/lock-workspace.ts'
import type { Db } from '../db/open.ts'
import type { EnrollmentRow } from '../db/schema.ts'
import { forUpdate, type Trx } from '../db/transaction.ts'

export const insertEnrollment = (trx: Trx, row: EnrollmentRow) =>
  trx.insertInto('enrollments').values(row).execute()

/** The tokens that can still be used, newest first. */
export const listOpenEnrollments = (
  db: Db | Trx,
  workspaceId: string,
  now: number,
): Promise<EnrollmentRow[]> =>
  db
    .selectFrom('enrollments')
    .selectAll()
    .where('workspace_id', '=', workspaceId)
    .where('used_at', 'is', null)
    .where('revoked_at', 'is', null)
    .where('expires_at', '>', now)
    .orderBy('created_at', 'desc')
    .orderBy('id', 'desc')
    .execute()

/** Concurrent exchanges of one token wait for each other. Also locks the workspace, which is locked before its tokens. */
export async function lockEnrollmentByHash(trx: Trx, hash: string): Promise<EnrollmentRow | undefined> {
  const query = trx.selectFrom('enrollments').where('hash', '=', hash)
  const found = await query.select('workspace_id').executeTakeFirst()
  if (found === undefined) return undefined
  await lockWorkspace(trx, found.workspace_id)
  return forUpdate(trx, query.selectAll()).executeTakeFirst()
}

export const lockEnrollment = (trx: Trx, id: string): Promise<EnrollmentRow | undefined> =>
  forUpdate(trx, trx.selectFrom('enrollments').selectAll().where('id', '=', id)).executeTakeFirst()

export const updateEnrollment = (trx: Trx, id: string, changes: Updateable<EnrollmentRow>) =>
  trx.updateTable('enrollments').set(changes).where('id', '=', id).execute()

/** Returns the number of deleted rows, at most `limit`. */
export async function deleteEnrollmentsExpiredBefore(
  trx: Trx,
  before: number,
  limit: number,
): Promise<number> {
  const expired = trx
    .selectFrom('enrollments')
    .select('id')
    .where('expires_at', '<', before)
    .orderBy('expires_at')
    .limit(limit)
  const { numDeletedRows } = await trx.deleteFrom('enrollments').where('id', 'in', expired).executeTakeFirst()
  return Number(numDeletedRows)
}
