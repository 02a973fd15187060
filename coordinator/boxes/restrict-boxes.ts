// Restricts the boxes of a user who becomes a contractor.

import type { Trx } from '../db/transaction.ts'
import { lockUnrestrictedBoxIds, updateBox } from './store/boxes.ts'

/** Locks the boxes in the order of their ids. A box is locked before its workspace, never after it. */
export async function restrictBoxesOf(trx: Trx, workspaceId: string, userId: string): Promise<void> {
  for (const id of await lockUnrestrictedBoxIds(trx, workspaceId, userId))
    await updateBox(trx, id, { restricted: 1 })
}
