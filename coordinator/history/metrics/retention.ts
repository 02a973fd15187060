// How long metrics and process snapshots are kept, and the deletion of older metrics.
import { METRICS_RESOLUTIONS } from '../../../shared/api/metrics.ts'
import type { Clock } from '../../../shared/clock.ts'
import { deleteInBatches } from '../../db/delete-in-batches.ts'
import type { Db } from '../../db/open.ts'
import { getPeriod } from './chunk.ts'
import { deleteChunksBefore } from './store.ts'

export const METRICS_RETENTION_SECONDS = 30 * 24 * 3600

/** How far the clock of a box may be ahead of the coordinator's. */
const MAX_AHEAD_MS = 60_000

/** False for a time in the future, or before the retention. Both times are in milliseconds since the epoch. */
export const isStorableTime = (at: number, now: number): boolean =>
  at <= now + MAX_AHEAD_MS && at >= now - METRICS_RETENTION_SECONDS * 1000

/** Chunks per transaction. */
const BATCH_SIZE = 500

/**
 * Deletes chunks that have no bucket within the retention. Returns their number.
 * @param signal aborts between two transactions
 */
export async function pruneMetrics(
  { db, clock }: { db: Db; clock: Clock },
  signal: AbortSignal,
): Promise<number> {
  const oldest = Math.floor(clock.now() / 1000) - METRICS_RETENTION_SECONDS
  let deleted = 0
  for (const res of METRICS_RESOLUTIONS) {
    const before = oldest - getPeriod(res) + 1
    deleted += await deleteInBatches(
      db,
      (trx) => deleteChunksBefore(trx, { res, before, limit: BATCH_SIZE }),
      signal,
    )
  }
  return deleted
}
