// What the list of modules passes between the directories of the coordinator, for tests that create services by themselves.
import { findBoxResource } from '../../coordinator/box-store/boxes.ts'
import { findSnapshotResource } from '../../coordinator/box-store/snapshots.ts'
import { deleteCommandsOfBox } from '../../coordinator/commands/delete-of-box.ts'
import type { Db } from '../../coordinator/db/open.ts'
import type { Trx } from '../../coordinator/db/transaction.ts'
import { deleteChunksOfBox as deleteMetrics } from '../../coordinator/metrics/store.ts'
import { loadAuditRetentionDays } from '../../coordinator/policies/service.ts'
import { deleteChunksOfBox as deleteProcessSnapshots } from '../../coordinator/process-snapshots/store.ts'

/** See OperationServiceOptions. */
export const findTarget = { box_delete: findBoxResource, snapshot_delete: findSnapshotResource }

/** See deleteBoxRows(). */
export async function deleteOfBox(trx: Trx, boxId: string): Promise<void> {
  for (const deleteRows of [deleteCommandsOfBox, deleteMetrics, deleteProcessSnapshots])
    await deleteRows(trx, boxId)
}

/** See AuditPruneOptions. */
export const createRetentionLoader = (db: Db) => (workspaceId: string) =>
  loadAuditRetentionDays(db, workspaceId)
