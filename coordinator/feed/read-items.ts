// Reads the items of feeds: those of changed rows, and all of a workspace.

import type { FeedKind } from '../../shared/api/feed.ts'
import { listBoxesById, listBoxOwners, listSnapshotResources, listSnapshotsById } from '../boxes/lookups.ts'
import type { Db } from '../db/open.ts'
import type { OperationRow } from '../db/schema.ts'
import type { Resource } from '../http/visibility.ts'
import { listOperationsById, listOperationsInProgress } from '../jobs/operations/service.ts'
import { type FeedItem, toBoxItem, toOperationItem, toSnapshotItem } from './view.ts'

const NO_TARGET = { boxId: null, ownerUserId: null }

/** The rows of one query. Takes about a millisecond on SQLite, where other requests wait for it. */
const BATCH_SIZE = 200

/** Reads the items with these ids of all workspaces. Leaves out ids without a row, and the copies of forks, which no list has. */
export async function* readItems(
  db: Db,
  kind: FeedKind,
  ids: readonly string[],
): AsyncGenerator<readonly FeedItem[]> {
  for (let start = 0; start < ids.length; start += BATCH_SIZE)
    yield await READERS[kind](db, ids.slice(start, start + BATCH_SIZE))
}

const READERS: Record<FeedKind, (db: Db, ids: readonly string[]) => Promise<FeedItem[]>> = {
  boxes: async (db, ids) => (await listBoxesById(db, ids)).map(toBoxItem),
  snapshots: async (db, ids) =>
    (await listSnapshotsById(db, ids)).filter((row) => row.transient === 0).map(toSnapshotItem),
  operations: async (db, ids) => toOperationItems(db, await listOperationsById(db, ids)),
}

export async function* readOperationsInProgress(
  db: Db,
  workspaceId: string,
): AsyncGenerator<readonly FeedItem[]> {
  const rows = await listOperationsInProgress(db, workspaceId)
  for (let start = 0; start < rows.length; start += BATCH_SIZE)
    yield await toOperationItems(db, rows.slice(start, start + BATCH_SIZE))
}

async function toOperationItems(db: Db, rows: readonly OperationRow[]): Promise<FeedItem[]> {
  const targets = new Map<string, Pick<Resource, 'boxId' | 'ownerUserId'>>()
  const idsOf = (kind: OperationRow['kind']) =>
    rows.filter((row) => row.kind === kind).map((row) => row.target_id)
  const [boxIds, snapshotIds] = [idsOf('box_delete'), idsOf('snapshot_delete')]
  if (boxIds.length > 0)
    for (const { id, owner_user_id: ownerUserId } of await listBoxOwners(db, boxIds))
      targets.set(id, { boxId: id, ownerUserId })
  if (snapshotIds.length > 0)
    for (const row of await listSnapshotResources(db, snapshotIds))
      targets.set(row.id, { boxId: row.box_id, ownerUserId: row.owner_user_id })
  return rows.map((row) => toOperationItem(row, targets.get(row.target_id) ?? NO_TARGET))
}
