// Rows of the command history that may have to go: which they are, and their going.
import type { Db } from '../db/open.ts'
import type { Trx } from '../db/transaction.ts'
import { removeOutput } from './output-chunks.ts'

/** Ended records (and deleted ones) that were asked for before the instant, oldest first. */
export const commandsBefore = (db: Db, requestedBefore: number, limit: number) =>
  db
    .selectFrom('commands')
    .select('id')
    .where('requested_at', '<', requestedBefore)
    .where((is) => is.or([is('status', '!=', 'running'), is('deleted_at', 'is not', null)]))
    .orderBy('requested_at')
    .limit(limit)
    .execute()

/** A box's records with what their output takes, newest first. */
export const sizesOf = (db: Db, boxId: string) =>
  db
    .selectFrom('commands')
    .select(['id', 'status', 'stdout_bytes', 'stdout_start', 'stderr_bytes', 'stderr_start', 'output_kept'])
    .where('box_id', '=', boxId)
    .where('deleted_at', 'is', null)
    .orderBy('requested_at', 'desc')
    .orderBy('id', 'desc')
    .execute()

export async function removeCommands(trx: Trx, ids: readonly string[]): Promise<void> {
  if (ids.length === 0) return
  await removeOutput(trx, ids)
  await trx
    .deleteFrom('commands')
    .where('id', 'in', [...ids])
    .execute()
}

/** Lets go of their output; how long it was stays. */
export async function dropOutput(trx: Trx, ids: readonly string[]): Promise<void> {
  if (ids.length === 0) return
  await removeOutput(trx, ids)
  await trx
    .updateTable('commands')
    .set((column) => ({ stdout_start: column.ref('stdout_bytes'), stderr_start: column.ref('stderr_bytes') }))
    .where('id', 'in', [...ids])
    .execute()
}
