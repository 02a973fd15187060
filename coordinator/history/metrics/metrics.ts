// Wires up the metrics of boxes: agents report samples, clients read series.
import type { Logger } from 'pino'
import type { Clock } from '../../../shared/clock.ts'
import type { Db } from '../../db/open.ts'
import type { Trx } from '../../db/transaction.ts'
import type { BoxFinder } from '../../http/find-box.ts'
import { createMetricsIngest, type MetricsIngest } from './ingest.ts'
import { createMetricsService, type MetricsService } from './service.ts'
import { deleteChunksOfBox } from './store.ts'
import { createRowDecoder } from './stored-chunks.ts'

export type Metrics = {
  service: MetricsService
  reportHandler: MetricsIngest
  /** Deletes the metrics of a box. */
  deleteOfBox(trx: Trx, boxId: string): Promise<unknown>
}

export function createMetrics(options: {
  db: Db
  clock: Clock
  log: Pick<Logger, 'warn' | 'error'>
  boxes: Pick<BoxFinder, 'find' | 'listVisible'>
}): Metrics {
  const decodeRow = createRowDecoder(options.log)
  return {
    service: createMetricsService({ ...options, decodeRow }),
    reportHandler: createMetricsIngest({ ...options, decodeRow }),
    deleteOfBox: deleteChunksOfBox,
  }
}
