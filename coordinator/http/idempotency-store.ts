// SQL of the idempotency_keys table: one row per key, from the start of its first request until 24 hours later.
import type { Db } from '../db/open.ts'
import type { IdempotencyKeyRow } from '../db/schema.ts'
import { type Trx, transaction } from '../db/transaction.ts'

/** The primary key. */
export type IdempotencyKeyId = Pick<IdempotencyKeyRow, 'workspace_id' | 'route' | 'key'>

/** Inserts the key and returns undefined, or returns the existing row. Rows created before `cutoff` are deleted. */
export function claimKey(
  db: Db,
  row: IdempotencyKeyId & { fingerprint: string; created_at: number },
  cutoff: number,
): Promise<IdempotencyKeyRow | undefined> {
  return transaction(db, async (trx) => {
    await trx.deleteFrom('idempotency_keys').where('created_at', '<=', cutoff).execute()
    const { numInsertedOrUpdatedRows } = await trx
      .insertInto('idempotency_keys')
      .values({ ...row, status: null, body: null })
      .onConflict((conflict) => conflict.doNothing())
      .executeTakeFirstOrThrow()
    return numInsertedOrUpdatedRows === 1n ? undefined : selectKey(trx, row).executeTakeFirstOrThrow()
  })
}

const selectKey = (db: Db | Trx, { workspace_id, route, key }: IdempotencyKeyId) =>
  db
    .selectFrom('idempotency_keys')
    .selectAll()
    .where('workspace_id', '=', workspace_id)
    .where('route', '=', route)
    .where('key', '=', key)

export async function saveResponse(
  trx: Trx,
  { workspace_id, route, key }: IdempotencyKeyId,
  response: { status: number; body: string },
): Promise<void> {
  await trx
    .updateTable('idempotency_keys')
    .set(response)
    .where('workspace_id', '=', workspace_id)
    .where('route', '=', route)
    .where('key', '=', key)
    .execute()
}

/** Deletes the key unless it has a response. */
export async function releaseKey(db: Db, { workspace_id, route, key }: IdempotencyKeyId): Promise<void> {
  await db
    .deleteFrom('idempotency_keys')
    .where('workspace_id', '=', workspace_id)
    .where('route', '=', route)
    .where('key', '=', key)
    .where('status', 'is', null)
    .execute()
}

/**
 * Deletes every key without a response. Called at startup, when no request can be running: a key of a process that
 * crashed would cause idempotency_in_progress for 24 hours.
 */
export async function releaseUnfinishedKeys(db: Db): Promise<void> {
  await db.deleteFrom('idempotency_keys').where('status', 'is', null).execute()
}
