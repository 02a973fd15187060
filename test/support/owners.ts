// What the list of modules passes between the directories of the coordinator, for tests that create services by themselves.

import { deleteTunnel } from '../../coordinator/agents/tunnel/owners/owners.ts'
import { findBoxResource } from '../../coordinator/boxes/store/boxes.ts'
import { findSnapshotResource } from '../../coordinator/boxes/store/snapshots.ts'
import type { Db } from '../../coordinator/db/open.ts'
import type { Trx } from '../../coordinator/db/transaction.ts'
import { deleteReposOfBox } from '../../coordinator/environments/delivery/box-repos.ts'
import { deleteCommandsOfBox } from '../../coordinator/history/commands/delete-of-box.ts'
import { deleteChunksOfBox as deleteMetrics } from '../../coordinator/history/metrics/store.ts'
import { deleteChunksOfBox as deleteProcessSnapshots } from '../../coordinator/history/process-snapshots/store.ts'
import { loadAuditRetentionDays } from '../../coordinator/identity/policies/service.ts'
import { deleteSharesOfBox } from '../../coordinator/port-shares/store.ts'
import { deleteViewersOfBox } from '../../coordinator/port-shares/viewers/store.ts'
import { deleteMountsOfBox } from '../../coordinator/secrets/mount-store.ts'
import { deleteUsesOfBox } from '../../coordinator/secrets/use-store.ts'
import { deleteLastPrompt } from '../../coordinator/team/store.ts'

/** See OperationServiceOptions. */
export const findTarget = { box_delete: findBoxResource, snapshot_delete: findSnapshotResource }

/** See deleteBoxRows(). */
export async function deleteOfBox(trx: Trx, boxId: string): Promise<void> {
  for (const deleteRows of [
    ...[deleteCommandsOfBox, deleteMetrics, deleteProcessSnapshots],
    ...[deleteLastPrompt, deleteSharesOfBox, deleteViewersOfBox],
    ...[deleteReposOfBox, deleteMountsOfBox, deleteUsesOfBox, deleteTunnel],
  ])
    await deleteRows(trx, boxId)
}

/** See AuditPruneOptions. */
export const createRetentionLoader = (db: Db) => (workspaceId: string) =>
  loadAuditRetentionDays(db, workspaceId)
