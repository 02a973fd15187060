// Removes text, directory and output from the command records of a box (zero data retention).
import { lockBox } from '../../db/lock-box.ts'
import type { Db } from '../../db/open.ts'
import { transaction } from '../../db/transaction.ts'
import { blankCommands, listCommandsWithContent, type RecordPosition } from './retention-store.ts'

/** Records per transaction. With 1 MiB for each stream, a batch is up to 40 MiB. */
const BATCH_SIZE = 20

/**
 * The result of an interrupted call is that some records are blank already: the next call continues. Each transaction locks the
 * box, like the ingest: it waits for reports that are being stored.
 * @param signal aborts between two transactions
 */
export async function blankCommandHistory(db: Db, boxId: string, signal: AbortSignal): Promise<void> {
  let before: RecordPosition | undefined
  while (!signal.aborted) {
    const rows = await transaction(db, async (trx) => {
      await lockBox(trx, boxId)
      const rows = await listCommandsWithContent(trx, boxId, before, BATCH_SIZE)
      await blankCommands(
        trx,
        rows.map(({ id }) => id),
      )
      return rows
    })
    before = rows.at(-1)
    if (rows.length < BATCH_SIZE) return
  }
}
