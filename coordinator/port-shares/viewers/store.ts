// Queries on the sessions of viewers, and on the codes that start them.
import type { Db } from '../../db/open.ts'
import { prepareQuery } from '../../db/prepared-queries.ts'
import type { ShareViewerRow } from '../../db/schema.ts'
import type { Trx } from '../../db/transaction.ts'

export type ViewerWithOwner = ShareViewerRow & { owner_user_id: string | null }

const selectWithOwner = (db: Db) =>
  db
    .selectFrom('share_viewers')
    .innerJoin('boxes', 'boxes.id', 'share_viewers.box_id')
    .selectAll('share_viewers')
    .select('boxes.owner_user_id as owner_user_id')

/** Finds a session, with the owner of its box, by the hash of its cookie. Runs for every request of a viewer. */
export const prepareViewerQuery = (db: Db) =>
  prepareQuery<ViewerWithOwner, [hash: string]>(db, (database) =>
    selectWithOwner(database).where('share_viewers.token_hash', '=', ''),
  )

export const findCode = (db: Db, codeHash: string): Promise<ViewerWithOwner | undefined> =>
  selectWithOwner(db).where('share_viewers.code_hash', '=', codeHash).executeTakeFirst()

export const insertCode = (trx: Trx, row: ShareViewerRow) =>
  trx.insertInto('share_viewers').values(row).execute()

/** Replaces a code by a session, or by another code. undefined: the code was used meanwhile. */
export const replaceCode = (
  trx: Trx,
  codeHash: string,
  next: Pick<ShareViewerRow, 'code_hash' | 'created_at' | 'expires_at'> &
    Partial<Pick<ShareViewerRow, 'token_hash'>>,
): Promise<ShareViewerRow | undefined> =>
  trx
    .updateTable('share_viewers')
    .set(next)
    .where('code_hash', '=', codeHash)
    .returningAll()
    .executeTakeFirst()

/** Deletes the oldest codes, or sessions, of a viewer at a share. @param kept number of those that stay */
export async function deleteOldest(
  trx: Trx,
  { share_id, user_id, credential_id }: Pick<ShareViewerRow, 'share_id' | 'user_id' | 'credential_id'>,
  { of, kept }: { of: 'codes' | 'sessions'; kept: number },
): Promise<void> {
  const rows = await trx
    .selectFrom('share_viewers')
    .select('id')
    .where('share_id', '=', share_id)
    .where('user_id', user_id === null ? 'is' : '=', user_id)
    .$if(user_id === null, (query) => query.where('credential_id', '=', credential_id))
    .where('token_hash', of === 'codes' ? 'is' : 'is not', null)
    .orderBy('created_at', 'desc')
    .orderBy('id', 'desc')
    .offset(kept)
    .limit(kept)
    .execute()
  await deleteRows(
    trx,
    rows.map(({ id }) => id),
  )
}

async function deleteRows(trx: Trx, ids: readonly string[]): Promise<number> {
  if (ids.length === 0) return 0
  const { numDeletedRows } = await trx
    .deleteFrom('share_viewers')
    .where('id', 'in', [...ids])
    .executeTakeFirst()
  return Number(numDeletedRows)
}

/** Returns the number of deleted rows, at most `limit`. */
export async function deleteExpired(trx: Trx, now: number, limit: number): Promise<number> {
  const expired = trx
    .selectFrom('share_viewers')
    .select('id')
    .where('expires_at', '<=', now)
    .orderBy('expires_at')
  const rows = await expired.limit(limit).execute()
  return deleteRows(
    trx,
    rows.map(({ id }) => id),
  )
}

export const deleteOfShare = (trx: Trx, shareId: string) =>
  trx.deleteFrom('share_viewers').where('share_id', '=', shareId).execute()

export const deleteViewersOfBox = (trx: Trx, boxId: string) =>
  trx.deleteFrom('share_viewers').where('box_id', '=', boxId).execute()
