// Queries on the signing keys of the issuer.
import type { Updateable } from 'kysely'
import type { Db } from '../../db/open.ts'
import type { FederationKeyRow } from '../../db/schema.ts'
import type { Trx } from '../../db/transaction.ts'

/** Oldest first. */
export const listKeys = (db: Db | Trx): Promise<FederationKeyRow[]> =>
  db.selectFrom('federation_keys').selectAll().orderBy('created_at').orderBy('id').execute()

export const insertKey = (trx: Trx, row: FederationKeyRow) =>
  trx.insertInto('federation_keys').values(row).execute()

export const updateKey = (trx: Trx, id: string, changes: Updateable<FederationKeyRow>) =>
  trx.updateTable('federation_keys').set(changes).where('id', '=', id).execute()

export const deleteKey = (trx: Trx, id: string) =>
  trx.deleteFrom('federation_keys').where('id', '=', id).execute()
