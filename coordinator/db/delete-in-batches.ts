// Deletes many rows in short transactions, between which other requests are served.
import { setImmediate } from 'node:timers/promises'
import type { Db } from './open.ts'
import { type Trx, transaction } from './transaction.ts'

/**
 * Repeats `deleteBatch`, each time in a transaction of its own, until nothing is left. Returns the number of deleted rows.
 * @param deleteBatch returns the number of rows that it has deleted
 * @param signal aborts between two transactions
 */
export async function deleteInBatches(
  db: Db,
  deleteBatch: (trx: Trx) => Promise<number>,
  signal: AbortSignal,
): Promise<number> {
  let total = 0
  while (!signal.aborted) {
    const deleted = await transaction(db, deleteBatch)
    if (deleted === 0) break
    total += deleted
    await setImmediate()
  }
  return total
}
