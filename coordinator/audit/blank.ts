// Erases the details of the audit events that clients have reported (zero data retention).
import { setImmediate } from 'node:timers/promises'
import type { Db } from '../db/open.ts'
import { transaction } from '../db/transaction.ts'
import { eraseReportedDetails, lockHead } from './store.ts'

const BATCH_SIZE = 500

/**
 * The result of an interrupted call is that some details are erased already: the next call continues. Each transaction locks the
 * newest event, like those that record events: it waits for events that are being recorded.
 * @param signal aborts between two transactions
 */
export async function blankReportedDetails(db: Db, workspaceId: string, signal: AbortSignal): Promise<void> {
  for (let after = 0; !signal.aborted; ) {
    const last = await transaction(db, async (trx) => {
      await lockHead(trx, workspaceId)
      return eraseReportedDetails(trx, workspaceId, after, BATCH_SIZE)
    })
    if (last === undefined) return
    after = last
    await setImmediate()
  }
}
