// The command history put together: recorded at the edge, reported by boxes, read and deleted over HTTP, pruned.
import type { Logger } from 'pino'
import type { CommandReport } from '../../shared/api/reports.ts'
import type { Clock } from '../../shared/clock.ts'
import type { BoxService } from '../boxes/service.ts'
import type { Db } from '../db/open.ts'
import type { OnCommit, Trx } from '../db/transaction.ts'
import { createExpectedRecords } from './expected.ts'
import { createCommandIngest } from './ingest.ts'
import { type CommandPruner, type CommandRetention, createCommandPruner } from './prune.ts'
import { createReceipts } from './receipts.ts'
import { type CommandRecorder, createCommandRecorder } from './recorder.ts'
import { type CommandHistory, createCommandHistory } from './service.ts'

/** What the end of a box's machine waits for its last reports: they take a tenth of that. */
const SETTLE_MS = 1_000

export type ReportedCommands = {
  /** Before the transaction that `apply` is a part of. */
  load(): Promise<void>
  apply(trx: Trx, onCommit: OnCommit, boxId: string, reports: readonly CommandReport[]): Promise<void>
}

export type Commands = {
  history: CommandHistory
  recorder: CommandRecorder
  reported: ReportedCommands
  prune: CommandPruner['prune']
  /** Resolves when the records of all commands that were answered are there, and soon in any case. */
  settled(boxId: string): Promise<void>
  close(): Promise<void>
}

export function createCommands(options: {
  db: Db
  clock: Clock
  log: Pick<Logger, 'warn' | 'error'>
  boxes: Pick<BoxService, 'resolve'>
  retention: CommandRetention
}): Commands {
  const { db, clock, log, boxes, retention } = options
  const receipts = createReceipts(db, clock)
  const expected = createExpectedRecords()
  const ingest = createCommandIngest(receipts, log)
  const pruner = createCommandPruner({
    db,
    clock,
    retention,
    onError: (err) => log.error({ err }, 'old commands of a box could not be removed'),
  })

  return {
    history: createCommandHistory({ db, clock, boxes, expected }),
    recorder: createCommandRecorder({ db, clock, receipts, expected }),
    reported: {
      load: ingest.load,
      async apply(trx, onCommit, boxId, reports) {
        const { arrived, records, outputBytes } = await ingest.apply(trx, boxId, reports)
        onCommit(() => {
          expected.arrived(boxId, arrived)
          pruner.grew(boxId, records, outputBytes)
        })
      },
    },
    prune: pruner.prune,
    settled: (boxId) => expected.settled(boxId, SETTLE_MS),
    close: pruner.close,
  }
}
