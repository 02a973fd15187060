// Process snapshots: stores the processes that agents report every minute, and returns those of any moment.
import type { Logger } from 'pino'
import type { ProcessSnapshotReport } from '../../../shared/api/process-snapshots.ts'
import type { Clock } from '../../../shared/clock.ts'
import { createBoxWarnings } from '../../base/log/box-warnings.ts'
import { deleteInBatches } from '../../db/delete-in-batches.ts'
import type { Db } from '../../db/open.ts'
import type { BoxRow } from '../../db/schema.ts'
import type { Trx } from '../../db/transaction.ts'
import type { BoxFinder } from '../../http/find-box.ts'
import { METRICS_RETENTION_SECONDS } from '../metrics/retention.ts'
import { CHUNK_MS } from './chunk.ts'
import { createSnapshotIngest } from './ingest.ts'
import { createProcsAtService, type ProcsAtService } from './service.ts'
import { deleteChunksOfBox, deleteOldestChunks } from './store.ts'

export type ProcessSnapshots = {
  reportHandler: {
    apply(trx: Trx, box: BoxRow, snapshots: readonly ProcessSnapshotReport[]): Promise<void>
  }
  /** Deletes the process snapshots of a box. */
  deleteOfBox(trx: Trx, boxId: string): Promise<unknown>
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
  boxes: Pick<BoxFinder, 'find'>
}): ProcessSnapshots {
  const warn = createBoxWarnings({ clock, log })

  function prune(signal: AbortSignal): Promise<number> {
    const before = Math.floor((clock.now() - CHUNK_MS) / 1000) - METRICS_RETENTION_SECONDS
    return deleteInBatches(db, (trx) => deleteOldestChunks(trx, before, PRUNE_BATCH_SIZE), signal)
  }

  return {
    reportHandler: { apply: createSnapshotIngest({ clock, warn }) },
    procsAt: createProcsAtService({ db, boxes, warn }),
    deleteOfBox: deleteChunksOfBox,
    prune,
  }
}
