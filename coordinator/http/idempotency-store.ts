// Rows of Idempotency-Key: one a key, from the first request's start until 24 hours later.
import type { Db } from '../db/open.ts'
import type { IdempotencyKeyRow } from '../db/schema.ts'
import { type Trx, transaction } from '../db/transaction.ts'

export type IdempotencyPlace = Pick<IdempotencyKeyRow, 'workspace_id' | 'route' | 'key'>

/** Takes the key, and returns undefined; or returns the row that has it. Rows made before `cutoff` do not count. */
export function claimKey(
  db: Db,
  row: IdempotencyPlace & { fingerprint: string; created_at: number },
  cutoff: number,
): Promise<IdempotencyKeyRow | undefined> {
  return transaction(db, async (trx) => {
    await trx.deleteFrom('idempotency_keys').where('created_at', '<=', cutoff).execute()
    const { numInsertedOrUpdatedRows } = await trx
      .insertInto('idempotency_keys')
      .values({ ...row, status: null, body: null })
      .onConflict((conflict) => conflict.doNothing())
      .executeTakeFirstOrThrow()
    return numInsertedOrUpdatedRows === 1n ? undefined : at(trx, row).executeTakeFirstOrThrow()
  })
}

const at = (db: Db | Trx, { workspace_id, route, key }: IdempotencyPlace) =>
  db
    .selectFrom('idempotency_keys')
    .selectAll()
    .where('workspace_id', '=', workspace_id)
    .where('route', '=', route)
    .where('key', '=', key)

export async function keepAnswer(
  trx: Trx,
  { workspace_id, route, key }: IdempotencyPlace,
  answer: { status: number; body: string },
): Promise<void> {
  await trx
    .updateTable('idempotency_keys')
    .set(answer)
    .where('workspace_id', '=', workspace_id)
    .where('route', '=', route)
    .where('key', '=', key)
    .execute()
}

/** Gives the key back, unless its request has been answered. */
export async function releaseKey(db: Db, { workspace_id, route, key }: IdempotencyPlace): Promise<void> {
  await db
    .deleteFrom('idempotency_keys')
    .where('workspace_id', '=', workspace_id)
    .where('route', '=', route)
    .where('key', '=', key)
    .where('status', 'is', null)
    .execute()
}

/** At start, when no request can be running: those of a process that died would stay in the way for 24 hours. */
export async function releaseUnfinished(db: Db): Promise<void> {
  await db.deleteFrom('idempotency_keys').where('status', 'is', null).execute()
}
