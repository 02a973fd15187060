// Deletes the command history of a box.
import type { Trx } from '../../db/transaction.ts'
import { deleteAllCommands, deleteCommands, listSomeCommandIds } from './retention-store.ts'

/** Deletes all commands of the box, including running ones, which a terminated box does not have. */
export const deleteCommandsOfBox = (trx: Trx, boxId: string): Promise<void> => deleteAllCommands(trx, boxId)

/** Deletes up to `limit` commands of the box, including running ones. Returns the number of deleted records. */
export async function deleteSomeCommandsOfBox(trx: Trx, boxId: string, limit: number): Promise<number> {
  const ids = await listSomeCommandIds(trx, boxId, limit)
  await deleteCommands(trx, ids)
  return ids.length
}
