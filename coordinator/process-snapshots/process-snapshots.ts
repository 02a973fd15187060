// Process snapshots: stores the processes that agents report every minute, and returns those of any moment.
import type { Logger } from 'pino'
import type { Clock } from '../../shared/clock.ts'
import type { BoxService } from '../boxes/service.ts'
import { deleteInBatches } from '../db/delete-in-batches.ts'
import type { Db } from '../db/open.ts'
import type { ReportHandlers } from '../lifecycle/agents.ts'
import { createBoxWarnings } from '../log/box-warnings.ts'
import { METRICS_RETENTION_SECONDS } from '../metrics/retention.ts'
import { CHUNK_MS } from './chunk.ts'
import { createSnapshotIngest } from './ingest.ts'
import { createProcsAtService, type ProcsAtService } from './service.ts'
import { deleteOldestChunks } from './store.ts'

export type ProcessSnapshots = {
  reportHandler: ReportHandlers['processSnapshots']
  procsAt: ProcsAtService
  /**
   * Deletes the snapshots whose retention has ended, also of boxes that do not report any more. Returns the number of deleted
   * chunks.
   * @param signal aborts between two transactions
   */
  prune(signal: AbortSignal): Promise<number>
}

const PRUNE_BATCH_SIZE = 200

export function createProcessSnapshots({
  db,
  clock,
  log,
  boxes,
}: {
  db: Db
  clock: Clock
  log: Pick<Logger, 'warn'>
  boxes: Pick<BoxService, 'find'>
}): ProcessSnapshots {
  const warn = createBoxWarnings({ clock, log })

  function prune(signal: AbortSignal): Promise<number> {
    const before = Math.floor((clock.now() - CHUNK_MS) / 1000) - METRICS_RETENTION_SECONDS
    return deleteInBatches(db, (trx) => deleteOldestChunks(trx, before, PRUNE_BATCH_SIZE), signal)
  }

  return {
    reportHandler: { apply: createSnapshotIngest({ clock, warn }) },
    procsAt: createProcsAtService({ db, boxes, warn }),
    prune,
  }
}
