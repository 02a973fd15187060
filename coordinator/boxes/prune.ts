// Deletes terminated boxes with their history when their retention has ended.
import type { Clock } from '../../shared/clock.ts'
import type { Db } from '../db/open.ts'
import { transaction } from '../db/transaction.ts'
import { type DeleteOfBox, deleteBoxRows } from './delete-rows.ts'
import { listExpiredBoxIds } from './store/box-lists.ts'

const DAY_MS = 24 * 60 * 60 * 1000
const BATCH_SIZE = 100

/**
 * Deletes boxes that were terminated more than `retentionDays` ago. Returns their number.
 * @param signal aborts between two transactions
 */
export async function pruneBoxes(
  options: { db: Db; clock: Clock; retentionDays: number; deleteOfBox: DeleteOfBox },
  signal: AbortSignal,
): Promise<number> {
  const { db, clock, retentionDays, deleteOfBox } = options
  const before = clock.now() - retentionDays * DAY_MS
  for (let deleted = 0; ; ) {
    const ids = await listExpiredBoxIds(db, before, BATCH_SIZE)
    for (const id of ids) {
      if (signal.aborted) return deleted
      await transaction(db, (trx) => deleteBoxRows(trx, id, deleteOfBox))
      deleted += 1
    }
    if (ids.length < BATCH_SIZE) return deleted
  }
}
