// Erases what a workspace has stored when its zero data retention is turned on (spec §2.6). New data is blank already: the code
// that stores it reads the setting. The files of the database contain erased bytes until the database reuses their space.

import { blankReportedDetails } from '../audit/blank.ts'
import type { Db } from '../db/open.ts'
import type { BoxRow } from '../db/schema.ts'
import { transaction } from '../db/transaction.ts'
import { blankCommandHistory } from '../history/commands/blank.ts'
import { blankProcessSnapshots } from '../history/process-snapshots/blank.ts'
import type { ScheduleHandler } from '../http/module.ts'
import { findWorkspace } from '../identity/lookups.ts'
import { deleteSchedule, lockSchedule } from '../jobs/schedules.ts'

export type Erasure = {
  /**
   * Repeating an interrupted call continues it.
   * @param signal aborts between two short transactions
   */
  run(workspaceId: string, signal: AbortSignal): Promise<void>
  /** The handler of the schedule. Runs again when the erasure has been requested again meanwhile. */
  handleSchedule: ScheduleHandler
}

const BOX_BATCH_SIZE = 200

export type ErasureOptions = {
  db: Db
  /** The boxes of a workspace, oldest first, with the deleted ones whose history is still readable. */
  listBoxes(workspaceId: string, after: BoxPosition | undefined, limit: number): Promise<BoxPosition[]>
}

export type BoxPosition = Pick<BoxRow, 'id' | 'created_at'>

export function createErasure({ db, listBoxes }: ErasureOptions): Erasure {
  async function run(workspaceId: string, signal: AbortSignal): Promise<void> {
    // The workspace may have been removed since.
    if (!(await findWorkspace(db, workspaceId))) return
    await blankReportedDetails(db, workspaceId, signal)
    for (let boxes = await listBoxes(workspaceId, undefined, BOX_BATCH_SIZE); boxes.length > 0; ) {
      for (const { id } of boxes) {
        if (signal.aborted) return
        await blankCommandHistory(db, id, signal)
        await blankProcessSnapshots(db, id, signal)
      }
      boxes = await listBoxes(workspaceId, boxes.at(-1), BOX_BATCH_SIZE)
    }
  }

  return {
    run,
    async handleSchedule(workspaceId, signal) {
      const key = { kind: 'erase', target_id: workspaceId }
      const requestedAt = await transaction(db, async (trx) => (await lockSchedule(trx, key))?.due_at)
      await run(workspaceId, signal)
      if (signal.aborted) return undefined
      return transaction(db, async (trx) => {
        const row = await lockSchedule(trx, key)
        if (row?.due_at !== requestedAt) return row?.due_at
        if (row) await deleteSchedule(trx, key)
        return undefined
      })
    },
  }
}
