// Deletes the audit log of a workspace.
import type { Trx } from '../db/transaction.ts'
import { deleteEvents, deleteHead } from './store.ts'

/** The log must be short: all events are deleted in one statement. */
export async function deleteAuditLog(trx: Trx, workspaceId: string): Promise<void> {
  await deleteEvents(trx, workspaceId)
  await deleteHead(trx, workspaceId)
}
