// Queries on the values that all coordinators of the database share.
import type { Db } from '../db/open.ts'
import { forUpdate, type Trx } from '../db/transaction.ts'

export type DeploymentValueRow = {
  name: string
  value: string
  /** The master key that has encrypted the value; null: the value is no secret. */
  key_id: string | null
}

declare module '../db/schema.ts' {
  interface Tables {
    deployment_values: DeploymentValueRow
  }
}

export const findValue = (db: Db | Trx, name: string): Promise<DeploymentValueRow | undefined> =>
  db.selectFrom('deployment_values').selectAll().where('name', '=', name).executeTakeFirst()

export const lockRow = (trx: Trx, name: string): Promise<DeploymentValueRow | undefined> =>
  forUpdate(trx, trx.selectFrom('deployment_values').selectAll().where('name', '=', name)).executeTakeFirst()

/** Returns false when there is a value with the name. Waits for a transaction that inserts one. */
export async function insertValue(db: Db | Trx, row: DeploymentValueRow): Promise<boolean> {
  const insert = db
    .insertInto('deployment_values')
    .values(row)
    .onConflict((conflict) => conflict.column('name').doNothing())
  return (await insert.executeTakeFirstOrThrow()).numInsertedOrUpdatedRows === 1n
}

/** Inserts the value, or replaces the one with the name. */
export async function replaceValue(db: Db | Trx, row: DeploymentValueRow): Promise<void> {
  await db
    .insertInto('deployment_values')
    .values(row)
    .onConflict((conflict) => conflict.column('name').doUpdateSet({ value: row.value, key_id: row.key_id }))
    .execute()
}
