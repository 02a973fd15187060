// Queries of the pruner and of zero data retention: find records, delete them, their content or their output.
import type { Db } from '../../db/open.ts'
import type { CommandRow } from '../../db/schema.ts'
import type { Trx } from '../../db/transaction.ts'
import { whereBefore } from '../../db/where-before.ts'
import { deleteOutput } from './output-chunk-store.ts'

/** Records requested before the instant, oldest first. Leaves out commands that still run, unless deleted. */
export const listExpiredCommands = (db: Db, requestedBefore: number, limit: number) =>
  db
    .selectFrom('commands')
    .select('id')
    .where('requested_at', '<', requestedBefore)
    .where((eb) => eb.or([eb('status', '!=', 'running'), eb('deleted_at', 'is not', null)]))
    .orderBy('requested_at')
    .limit(limit)
    .execute()

/** A box's records with their output ranges, newest first. */
export const listCommandSizes = (db: Db, boxId: string) =>
  db
    .selectFrom('commands')
    .select(['id', 'status', 'stdout_bytes', 'stdout_start', 'stderr_bytes', 'stderr_start', 'output_kept'])
    .where('box_id', '=', boxId)
    .where('deleted_at', 'is', null)
    .orderBy('requested_at', 'desc')
    .orderBy('id', 'desc')
    .execute()

export async function deleteCommands(trx: Trx, ids: readonly string[]): Promise<void> {
  if (ids.length === 0) return
  await deleteOutput(trx, ids)
  await trx
    .deleteFrom('commands')
    .where('id', 'in', [...ids])
    .execute()
}

/** Discards the output of records. The stream lengths stay. */
export async function discardOutput(trx: Trx, ids: readonly string[]): Promise<void> {
  if (ids.length === 0) return
  await deleteOutput(trx, ids)
  await trx
    .updateTable('commands')
    .set((column) => ({ stdout_start: column.ref('stdout_bytes'), stderr_start: column.ref('stderr_bytes') }))
    .where('id', 'in', [...ids])
    .execute()
}

export async function listSomeCommandIds(trx: Trx, boxId: string, limit: number): Promise<string[]> {
  const rows = await trx
    .selectFrom('commands')
    .select('id')
    .where('box_id', '=', boxId)
    .limit(limit)
    .execute()
  return rows.map(({ id }) => id)
}

/** Deletes all commands of the box, including running ones, which a terminated box does not have. */
export async function deleteAllCommands(trx: Trx, boxId: string): Promise<void> {
  const ids = trx.selectFrom('commands').select('id').where('box_id', '=', boxId)
  await trx.deleteFrom('command_output').where('command_id', 'in', ids).execute()
  await trx.deleteFrom('commands').where('box_id', '=', boxId).execute()
}

export type RecordPosition = Pick<CommandRow, 'id' | 'requested_at'>

/** Records that have text, a directory or output, newest first. Deleted records have none of them. */
export function listCommandsWithContent(
  trx: Trx,
  boxId: string,
  before: RecordPosition | undefined,
  limit: number,
): Promise<RecordPosition[]> {
  let query = trx
    .selectFrom('commands')
    .select(['id', 'requested_at'])
    .where('box_id', '=', boxId)
    .where('deleted_at', 'is', null)
    .where((eb) =>
      eb.or([eb('output_kept', '=', 1), eb('command', 'is not', null), eb('cwd', 'is not', null)]),
    )
  if (before !== undefined)
    query = query.where(whereBefore('requested_at', { at: before.requested_at, id: before.id }))
  return query.orderBy('requested_at', 'desc').orderBy('id', 'desc').limit(limit).execute()
}

/** Deletes what zero data retention does not store (spec §2.6). The stream lengths stay. */
export async function blankCommands(trx: Trx, ids: readonly string[]): Promise<void> {
  if (ids.length === 0) return
  await discardOutput(trx, ids)
  await trx
    .updateTable('commands')
    .set({ command: null, command_truncated: 0, cwd: null, output_kept: 0 })
    .where('id', 'in', [...ids])
    .execute()
}
