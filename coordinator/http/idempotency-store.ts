// SQL of the idempotency_keys table: one row per key, from the start of its first request until 24 hours later.
import { deleteInBatches } from '../db/delete-in-batches.ts'
import type { Db } from '../db/open.ts'
import type { IdempotencyKeyRow } from '../db/schema.ts'
import { forUpdate, type Trx, transaction } from '../db/transaction.ts'
import { hasOtherOwner } from '../replicas/owners.ts'

/** The primary key. */
export type IdempotencyKeyId = Pick<IdempotencyKeyRow, 'workspace_id' | 'route' | 'key'>

/** Rows per transaction. */
const BATCH_SIZE = 500

/** `isRunning`: another coordinator runs the request that wrote the row. */
export type ExistingKey = IdempotencyKeyRow & { isRunning: boolean }

/**
 * Inserts the key and returns undefined, or returns the existing row. A row created before `cutoff` does not count. Waits for a
 * transaction that is storing the response of the key. A request without a response that no coordinator runs belongs to
 * `lease_owner` then.
 */
export function claimKey(
  db: Db,
  row: IdempotencyKeyId & { fingerprint: string; created_at: number; lease_owner: string },
  cutoff: number,
): Promise<ExistingKey | undefined> {
  return transaction(db, async (trx) => {
    await deleteKey(trx, row).where('created_at', '<=', cutoff).execute()
    const { numInsertedOrUpdatedRows } = await trx
      .insertInto('idempotency_keys')
      .values({ ...row, status: null, body: null })
      .onConflict((conflict) => conflict.doNothing())
      .executeTakeFirstOrThrow()
    if (numInsertedOrUpdatedRows === 1n) return undefined
    const existing = await forUpdate(trx, selectKey(trx, row)).executeTakeFirstOrThrow()
    if (existing.status !== null) return { ...existing, isRunning: false }
    const isRunning = await hasOtherOwner(trx, existing.lease_owner, row.lease_owner)
    if (!isRunning && existing.lease_owner !== row.lease_owner) await updateKey(trx, row, row)
    return { ...existing, isRunning }
  })
}

const deleteKey = (db: Db | Trx, { workspace_id, route, key }: IdempotencyKeyId) =>
  db
    .deleteFrom('idempotency_keys')
    .where('workspace_id', '=', workspace_id)
    .where('route', '=', route)
    .where('key', '=', key)

const selectKey = (db: Db | Trx, { workspace_id, route, key }: IdempotencyKeyId) =>
  db
    .selectFrom('idempotency_keys')
    .selectAll()
    .where('workspace_id', '=', workspace_id)
    .where('route', '=', route)
    .where('key', '=', key)

const updateKey = (
  trx: Trx,
  { workspace_id, route, key }: IdempotencyKeyId,
  { lease_owner }: { lease_owner: string },
) =>
  trx
    .updateTable('idempotency_keys')
    .set({ lease_owner })
    .where('workspace_id', '=', workspace_id)
    .where('route', '=', route)
    .where('key', '=', key)
    .execute()

/** Returns false when another coordinator has taken the key over, which then runs the request. */
export async function saveResponse(
  trx: Trx,
  { workspace_id, route, key }: IdempotencyKeyId,
  response: { status: number; body: string },
  leaseOwner: string,
): Promise<boolean> {
  const { numUpdatedRows } = await trx
    .updateTable('idempotency_keys')
    .set(response)
    .where('workspace_id', '=', workspace_id)
    .where('route', '=', route)
    .where('key', '=', key)
    .where('lease_owner', '=', leaseOwner)
    .executeTakeFirstOrThrow()
  return numUpdatedRows > 0n
}

/** Deletes the key unless it has a response, or another coordinator runs its request. */
export async function releaseKey(db: Db, id: IdempotencyKeyId, leaseOwner: string): Promise<void> {
  await deleteKey(db, id).where('status', 'is', null).where('lease_owner', '=', leaseOwner).execute()
}

/**
 * Deletes the keys created at or before the instant. Returns their number.
 * @param signal aborts between two transactions
 */
export const deleteExpiredKeys = (db: Db, createdBefore: number, signal: AbortSignal): Promise<number> =>
  deleteInBatches(
    db,
    async (trx) => {
      const keys = await trx
        .selectFrom('idempotency_keys')
        .select(['workspace_id', 'route', 'key'])
        .where('created_at', '<=', createdBefore)
        .orderBy('created_at')
        .limit(BATCH_SIZE)
        .execute()
      for (const key of keys) await deleteKey(trx, key).execute()
      return keys.length
    },
    signal,
  )
