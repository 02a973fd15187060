// Queries on the times of the last prompts.
import type { Db } from '../db/open.ts'
import type { LastPromptRow } from '../db/schema.ts'
import type { Trx } from '../db/transaction.ts'

/** No-op when a later time is stored. */
export const upsertLastPrompt = (trx: Trx, row: LastPromptRow) =>
  trx
    .insertInto('last_prompts')
    .values(row)
    .onConflict((conflict) =>
      conflict.column('box_id').doUpdateSet({ at: row.at }).where('last_prompts.at', '<', row.at),
    )
    .execute()

/** The rows of the boxes that have accepted a prompt. */
export async function listLastPrompts(db: Db, boxIds: readonly string[]): Promise<Map<string, number>> {
  if (boxIds.length === 0) return new Map()
  const rows = await db.selectFrom('last_prompts').selectAll().where('box_id', 'in', boxIds).execute()
  return new Map(rows.map(({ box_id: boxId, at }) => [boxId, at]))
}

export const deleteLastPrompt = (trx: Trx, boxId: string) =>
  trx.deleteFrom('last_prompts').where('box_id', '=', boxId).execute()
