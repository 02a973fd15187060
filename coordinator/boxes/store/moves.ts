// Reads and writes the moves of boxes, which count against the limits per day.
import type { BoxMoveRow } from '../../db/schema.ts'
import type { Trx } from '../../db/transaction.ts'

export const insertMove = (trx: Trx, row: BoxMoveRow) => trx.insertInto('box_moves').values(row).execute()

/** The moves of the workspace after the instant, oldest first. */
export const listMovesAfter = (trx: Trx, workspaceId: string, instant: number): Promise<BoxMoveRow[]> =>
  trx
    .selectFrom('box_moves')
    .selectAll()
    .where('workspace_id', '=', workspaceId)
    .where('at', '>', instant)
    .orderBy('at')
    .execute()

export const deleteMove = (trx: Trx, boxId: string, at: number) =>
  trx.deleteFrom('box_moves').where('box_id', '=', boxId).where('at', '=', at).execute()

export const deleteMovesOfBox = (trx: Trx, boxId: string) =>
  trx.deleteFrom('box_moves').where('box_id', '=', boxId).execute()
