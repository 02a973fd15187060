// Queries on download links.
import type { Db } from '../db/open.ts'
import type { DownloadLinkRow } from '../db/schema.ts'
import type { Trx } from '../db/transaction.ts'

export const insertLink = (db: Db, row: DownloadLinkRow) =>
  db.insertInto('download_links').values(row).execute()

type LinkKey = { hash: string; credentialId: string; now: number }

export const findLink = (db: Db, { hash, credentialId, now }: LinkKey) =>
  db
    .selectFrom('download_links')
    .selectAll()
    .where('hash', '=', hash)
    .where('credential_id', '=', credentialId)
    .where('expires_at', '>', now)
    .executeTakeFirst()

/** Deletes a link and returns it. undefined: there is no such link, or another request has deleted it. */
export const takeLink = (db: Db, { hash, credentialId, now }: LinkKey) =>
  db
    .deleteFrom('download_links')
    .where('hash', '=', hash)
    .where('credential_id', '=', credentialId)
    .where('expires_at', '>', now)
    .returningAll()
    .executeTakeFirst()

/** Returns the number of deleted links, at most `limit`. */
export async function deleteLinksExpiredBefore(trx: Trx, before: number, limit: number): Promise<number> {
  const rows = await trx
    .selectFrom('download_links')
    .select('hash')
    .where('expires_at', '<=', before)
    .orderBy('expires_at')
    .limit(limit)
    .execute()
  if (rows.length === 0) return 0
  const hashes = rows.map(({ hash }) => hash)
  await trx.deleteFrom('download_links').where('hash', 'in', hashes).execute()
  return hashes.length
}

export const deleteLinksOfBox = (trx: Trx, boxId: string) =>
  trx.deleteFrom('download_links').where('box_id', '=', boxId).execute()
