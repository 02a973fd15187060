// Deletes the row of a terminated box, with everything that is stored for it.

import type { Trx } from '../db/transaction.ts'
import { deleteSchedulesOf } from '../jobs/schedules.ts'
import { deleteBox } from './store/boxes.ts'
import { deleteEventsOfBox } from './store/events.ts'
import { deleteJob } from './store/jobs.ts'
import { deleteMovesOfBox } from './store/moves.ts'

/** Deletes what the modules store for a box, in tables that refer to it. */
export type DeleteOfBox = (trx: Trx, boxId: string) => Promise<unknown>

export async function deleteBoxRows(trx: Trx, boxId: string, deleteOfBox: DeleteOfBox): Promise<void> {
  await deleteOfBox(trx, boxId)
  await deleteSchedulesOf(trx, boxId)
  await deleteJob(trx, boxId)
  await deleteEventsOfBox(trx, boxId)
  await deleteMovesOfBox(trx, boxId)
  await deleteBox(trx, boxId)
}
