// Wires up the command history: the edge tracks commands, boxes report on them, clients read and delete records.
import type { Logger } from 'pino'
import type { CommandReport } from '../../../shared/api/reports.ts'
import type { Clock } from '../../../shared/clock.ts'
import type { Db } from '../../db/open.ts'
import type { OnCommit, Trx } from '../../db/transaction.ts'
import type { BoxFinder } from '../../http/find-box.ts'
import { createCommandClaims } from './command-claims.ts'
import { type CommandTracker, createCommandTracker } from './command-tracker.ts'
import { createCommandIngest, type ReportingBox } from './ingest.ts'
import { createPendingRecords } from './pending-records.ts'
import { type CommandPruner, type CommandRetention, createCommandPruner } from './prune.ts'
import { type CommandHistory, createCommandHistory } from './service.ts'

export type CommandReportHandler = {
  /** Must resolve before the transaction that contains `apply` is started. */
  loadKey(): Promise<void>
  apply(trx: Trx, onCommit: OnCommit, box: ReportingBox, reports: readonly CommandReport[]): Promise<void>
}

export type Commands = {
  history: CommandHistory
  tracker: CommandTracker
  reportHandler: CommandReportHandler
  prune: CommandPruner['prune']
  close(): Promise<void>
}

export function createCommands(options: {
  db: Db
  clock: Clock
  log: Pick<Logger, 'info' | 'warn' | 'error'>
  boxes: Pick<BoxFinder, 'find'>
  retention: CommandRetention
}): Commands {
  const { db, clock, log, boxes, retention } = options
  const claims = createCommandClaims(db, clock)
  const pending = createPendingRecords()
  const ingest = createCommandIngest(claims, log)
  const pruner = createCommandPruner({
    db,
    clock,
    retention,
    onError: (err, boxId) => log.error({ err, boxId }, 'failed to prune the command history of a box'),
  })

  return {
    history: createCommandHistory({ db, clock, boxes, pending }),
    tracker: createCommandTracker({ db, clock, log, claims, pending }),
    reportHandler: {
      loadKey: ingest.loadKey,
      async apply(trx, onCommit, box, reports) {
        const { recorded, newRecords, outputBytes } = await ingest.apply(trx, box, reports)
        onCommit(() => {
          pending.markCommitted(box.id, recorded)
          pruner.recordGrowth(box.id, newRecords, outputBytes)
        })
      },
    },
    prune: pruner.prune,
    close: pruner.close,
  }
}
