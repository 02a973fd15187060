// Queries on the uses of secrets.
import type { Db } from '../db/open.ts'
import type { BoxRow, SecretUseRow } from '../db/schema.ts'
import { forUpdate, type Trx } from '../db/transaction.ts'

export type NewUse = { boxId: string; host: string; firstAt: number; lastAt: number; count: number }
export type ListedUseRow = Omit<SecretUseRow, 'hostname'> & { hostname: string | null }

/**
 * Locks the secret, so that it is not deleted meanwhile.
 * @returns its workspace; undefined: it has been deleted
 */
export async function lockUsedSecret(trx: Trx, secretId: string): Promise<string | undefined> {
  const row = await forUpdate(
    trx,
    trx.selectFrom('secrets').select('workspace_id').where('id', '=', secretId),
  ).executeTakeFirst()
  return row?.workspace_id
}

/** Adds the uses on a box whose row is stored. The caller has locked the secret. */
export const addUse = (
  trx: Trx,
  { secretId, workspaceId }: { secretId: string; workspaceId: string },
  { boxId, host, firstAt, lastAt, count }: NewUse,
) =>
  trx
    .insertInto('secret_uses')
    .columns(['secret_id', 'workspace_id', 'box_id', 'host', 'first_at', 'last_at', 'count'])
    .expression((eb) =>
      eb
        .selectFrom('boxes')
        .select([
          eb.val(secretId).as('secret_id'),
          eb.val(workspaceId).as('workspace_id'),
          'id as box_id',
          eb.val(host).as('host'),
          eb.val(firstAt).as('first_at'),
          eb.val(lastAt).as('last_at'),
          eb.val(count).as('count'),
        ])
        .where('id', '=', boxId),
    )
    .onConflict((conflict) =>
      conflict.columns(['secret_id', 'box_id', 'host']).doUpdateSet((eb) => ({
        last_at: eb.ref('excluded.last_at'),
        count: eb('secret_uses.count', '+', eb.ref('excluded.count')),
      })),
    )
    .execute()

/** Deletes the uses after the newest ones. Returns the number of deleted rows, at most `batch`. */
export async function deleteOldUses(
  trx: Trx,
  secretId: string,
  { kept, batch }: { kept: number; batch: number },
): Promise<number> {
  const rows = await trx
    .selectFrom('secret_uses')
    .select(['box_id', 'host'])
    .where('secret_id', '=', secretId)
    .orderBy('last_at', 'desc')
    .orderBy('box_id')
    .orderBy('host')
    .offset(kept)
    .limit(batch)
    .execute()
  for (const { box_id, host } of rows)
    await trx
      .deleteFrom('secret_uses')
      .where('secret_id', '=', secretId)
      .where('box_id', '=', box_id)
      .where('host', '=', host)
      .execute()
  return rows.length
}

/** Newest first, with the names of the boxes; null: the box has been deleted. */
export async function listUses(db: Db, secretId: string, limit: number): Promise<ListedUseRow[]> {
  const rows = await db
    .selectFrom('secret_uses')
    .leftJoin('boxes', 'boxes.id', 'secret_uses.box_id')
    .selectAll('secret_uses')
    .select(['boxes.hostname', 'boxes.desired_state'])
    .where('secret_id', '=', secretId)
    .orderBy('last_at', 'desc')
    .orderBy('box_id')
    .orderBy('host')
    .limit(limit)
    .execute()
  return rows.map(({ desired_state, hostname, ...row }) => ({
    ...row,
    count: Number(row.count),
    hostname: isLive(desired_state) ? hostname : null,
  }))
}

const isLive = (desiredState: BoxRow['desired_state'] | null): boolean =>
  desiredState !== null && desiredState !== 'terminated'

export const deleteUsesOfSecret = (trx: Trx, secretId: string) =>
  trx.deleteFrom('secret_uses').where('secret_id', '=', secretId).execute()

export const deleteUsesOfBox = (trx: Trx, boxId: string) =>
  trx.deleteFrom('secret_uses').where('box_id', '=', boxId).execute()
