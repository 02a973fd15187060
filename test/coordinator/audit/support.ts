// Records events for tests of the audit log.
import { type AuditEvent, recordAuditEvent } from '../../../coordinator/audit/service.ts'
import type { Db } from '../../../coordinator/db/open.ts'
import { transaction } from '../../../coordinator/db/transaction.ts'

/** Returns the number of the event. */
export async function record(
  db: Db,
  event: Pick<AuditEvent, 'actor' | 'kind'> & Partial<AuditEvent>,
): Promise<number> {
  let recorded = 0
  await transaction(db, async (trx) =>
    recordAuditEvent(trx, { boxId: null, detail: {}, at: Date.now(), ...event }, (no) => {
      recorded = no
    }),
  )
  return recorded
}
