// Restricts boxes: those of a user who becomes a contractor, and those whose environment becomes restricted.

import { type ChangedBy, recordBoxChange } from '../audit/record-change.ts'
import type { BoxRow } from '../db/schema.ts'
import type { Trx } from '../db/transaction.ts'
import type { ModuleRegistry } from '../http/module.ts'
import { lockUnrestrictedBoxes, updateBox } from './store/boxes.ts'

type Restrictors = Pick<ModuleRegistry, 'restrictBox'>

/** Removes what the box may not have any more. No effect on a restricted box. The caller has locked the box. */
export async function restrictBox(
  trx: Trx,
  modules: Restrictors,
  box: BoxRow,
  { reason, ...by }: ChangedBy & { reason: 'contractor' | 'environment' },
): Promise<void> {
  if (box.restricted === 1) return
  await modules.restrictBox(trx, box.id)
  await updateBox(trx, box.id, { restricted: 1 })
  recordBoxChange(trx, 'box.restrict', box, by, { reason })
}

export type RestrictBoxesOf = (trx: Trx, workspaceId: string, userId: string, by: ChangedBy) => Promise<void>

/** Locks the boxes in the order of their ids. A box is locked before its workspace, never after it. */
export const createRestrictBoxesOf =
  (modules: Restrictors): RestrictBoxesOf =>
  async (trx, workspaceId, userId, by) => {
    for (const box of await lockUnrestrictedBoxes(trx, workspaceId, userId))
      await restrictBox(trx, modules, box, { ...by, reason: 'contractor' })
  }
