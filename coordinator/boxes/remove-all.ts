// Deletes all boxes of a workspace whose closing has ended: first their machines, later their rows and history.
import { setImmediate } from 'node:timers/promises'
import type { Clock } from '../../shared/clock.ts'
import { recordBoxChange } from '../audit/record-change.ts'
import { deleteInBatches } from '../db/delete-in-batches.ts'
import { lockBox } from '../db/lock-box.ts'
import type { Db } from '../db/open.ts'
import { transaction } from '../db/transaction.ts'
import { deleteSomeCommandsOfBox } from '../history/commands/delete-of-box.ts'
import type { DeletionHook } from './change-state.ts'
import { type DeleteOfBox, deleteBoxRows } from './delete-rows.ts'
import { setDesiredState } from './lifecycle/set-desired-state.ts'
import { hasLiveBox, listBoxIdsToRemove, listTerminatedBoxIds } from './store/box-lists.ts'
import { deleteSomeEventsOfBox } from './store/events.ts'

export type RemoveAllOptions = {
  db: Db
  clock: Clock
  /** Schedules the box for the reconciler. */
  schedule(boxId: string): void
  beforeDelete: DeletionHook
}

/** The numbers of rows per query and transaction. The output of a command can have 2 MiB. */
const BATCH = { boxes: 100, commands: 50, events: 1000 } as const

/**
 * Requests the deletion of every box of the workspace, without final snapshots. Returns whether all are terminated.
 * @param signal aborts between two transactions
 */
export async function removeAllBoxes(
  { db, clock, schedule, beforeDelete }: RemoveAllOptions,
  workspaceId: string,
  signal: AbortSignal,
): Promise<boolean> {
  while (!signal.aborted) {
    const ids = await listBoxIdsToRemove(db, workspaceId, BATCH.boxes)
    for (const id of ids) await removeBox(id)
    if (ids.length === 0) return !(await hasLiveBox(db, workspaceId))
  }
  return false

  function removeBox(id: string): Promise<void> {
    return transaction(db, async (trx, onCommit) => {
      const row = await lockBox(trx, id)
      if (!row || row.desired_state === 'terminated') return
      const now = clock.now()
      await beforeDelete(trx, row, 'system', now)
      await setDesiredState(trx, row, {
        state: 'terminated',
        actor: 'system',
        now,
        reason: 'the workspace has been closed',
      })
      recordBoxChange(trx, 'box.delete', row, { actor: 'system', now })
      onCommit(() => schedule(id))
    })
  }
}

/**
 * Deletes the rows of all terminated boxes of the workspace, with their history.
 * @param signal aborts between two transactions
 */
export async function deleteAllBoxes(
  { db, deleteOfBox }: { db: Db; deleteOfBox: DeleteOfBox },
  workspaceId: string,
  signal: AbortSignal,
): Promise<void> {
  while (!signal.aborted) {
    const ids = await listTerminatedBoxIds(db, workspaceId, BATCH.boxes)
    if (ids.length === 0) return
    for (const id of ids) {
      await deleteInBatches(db, (trx) => deleteSomeCommandsOfBox(trx, id, BATCH.commands), signal)
      await deleteInBatches(db, (trx) => deleteSomeEventsOfBox(trx, id, BATCH.events), signal)
      if (signal.aborted) return
      await transaction(db, (trx) => deleteBoxRows(trx, id, deleteOfBox))
      await setImmediate()
    }
  }
}
