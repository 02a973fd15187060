// Erases what a workspace has stored when its zero data retention is turned on (spec §2.6). New data is blank already: the code
// that stores it reads the setting. The files of the database contain erased bytes until the database reuses their space.
import { blankReportedDetails } from '../audit/blank.ts'
import { blankCommandHistory } from '../commands/blank.ts'
import type { Db } from '../db/open.ts'
import type { OnCommit, Trx } from '../db/transaction.ts'
import { blankProcessSnapshots } from '../process-snapshots/blank.ts'
import { findWorkspace, listBoxes, requestErasure } from './store.ts'

export type Erasure = {
  /**
   * Erases the stored data after the commit. Call it in the transaction that turns zero data retention on: the request is stored
   * with the setting, and continues after a restart.
   * @param now milliseconds since the epoch
   */
  request(trx: Trx, onCommit: OnCommit, workspaceId: string, now: number): Promise<void>
  /**
   * Called by the schedules. Repeating an interrupted call continues it.
   * @param signal aborts between two short transactions
   */
  run(workspaceId: string, signal: AbortSignal): Promise<void>
}

const BOX_BATCH_SIZE = 200

/** @param onRequest called after a request has been stored that is due at this time, in milliseconds since the epoch */
export function createErasure({ db, onRequest }: { db: Db; onRequest(time: number): void }): Erasure {
  return {
    async request(trx, onCommit, workspaceId, now) {
      await requestErasure(trx, workspaceId, now)
      onCommit(() => onRequest(now))
    },

    async run(workspaceId, signal) {
      // The workspace may have been removed since.
      if (!(await findWorkspace(db, workspaceId))) return
      await blankReportedDetails(db, workspaceId, signal)
      for (let boxes = await listBoxes(db, workspaceId, undefined, BOX_BATCH_SIZE); boxes.length > 0; ) {
        for (const { id } of boxes) {
          if (signal.aborted) return
          await blankCommandHistory(db, id, signal)
          await blankProcessSnapshots(db, id, signal)
        }
        boxes = await listBoxes(db, workspaceId, boxes.at(-1), BOX_BATCH_SIZE)
      }
    },
  }
}
