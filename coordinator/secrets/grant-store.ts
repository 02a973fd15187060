// Queries on the grants of secrets.
import type { Db } from '../db/open.ts'
import type { SecretGrantRow } from '../db/schema.ts'
import type { Trx } from '../db/transaction.ts'

/** The grants of some secrets, oldest first. */
export async function listGrants(db: Db | Trx, secretIds: readonly string[]): Promise<SecretGrantRow[]> {
  if (secretIds.length === 0) return []
  return db
    .selectFrom('secret_grants')
    .selectAll()
    .where('secret_id', 'in', secretIds)
    .orderBy('created_at')
    .orderBy('id')
    .execute()
}

export const insertGrant = (trx: Trx, row: SecretGrantRow) =>
  trx.insertInto('secret_grants').values(row).execute()

export const deleteGrant = (trx: Trx, id: string) =>
  trx.deleteFrom('secret_grants').where('id', '=', id).execute()

export const deleteGrantsOfSecret = (trx: Trx, secretId: string) =>
  trx.deleteFrom('secret_grants').where('secret_id', '=', secretId).execute()
