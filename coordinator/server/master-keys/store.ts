// Queries on the columns with encrypted values, which the modules name.
import { sql } from 'kysely'
import type { Db } from '../../db/open.ts'
import type { Trx } from '../../db/transaction.ts'
import type { SealedColumn } from '../../http/module.ts'

export type SealedRow = { id: string; workspaceId: string; sealed: string }

/** Returns the number of rows by the id of their master key. Rows without one are not encrypted. */
export async function countRowsByKey(db: Db, { table }: SealedColumn): Promise<Map<string, number>> {
  const { rows } = await sql<{ key_id: string; count: number }>`
    select key_id, count(*) as count from ${sql.table(table)}
    where key_id is not null group by key_id`.execute(db)
  return new Map(rows.map(({ key_id, count }) => [key_id, Number(count)]))
}

/** Returns the rows whose values this master key has encrypted, in the order of their ids. */
export async function listRowsOfKey(
  db: Db,
  { table, id, value, isOfDeployment = false }: SealedColumn,
  { keyId, after, limit }: { keyId: string; after: string; limit: number },
): Promise<SealedRow[]> {
  const workspaceId = isOfDeployment ? sql.lit('') : sql.ref('workspace_id')
  const { rows } = await sql<SealedRow>`
    select ${sql.ref(id)} as id, ${workspaceId} as "workspaceId", ${sql.ref(value)} as sealed
    from ${sql.table(table)}
    where key_id = ${keyId} and ${sql.ref(id)} > ${after}
    order by ${sql.ref(id)} limit ${limit}`.execute(db)
  return rows
}

/** Does nothing when the value has changed meanwhile. */
export async function replaceSealed(
  trx: Trx,
  { table, id, value }: SealedColumn,
  row: SealedRow,
  { sealed, keyId }: { sealed: string; keyId: string },
): Promise<void> {
  await sql`
    update ${sql.table(table)} set ${sql.ref(value)} = ${sealed}, key_id = ${keyId}
    where ${sql.ref(id)} = ${row.id} and ${sql.ref(value)} = ${row.sealed}`.execute(trx)
}
