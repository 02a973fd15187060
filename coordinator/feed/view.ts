// What a feed shows of the boxes, snapshots and operations of its workspace, and the items as their routes present them.

import type { FeedKind } from '../../shared/api/feed.ts'
import type { ChangedBoxRow } from '../boxes/lookups.ts'
import { presentBox } from '../boxes/present.ts'
import { presentSnapshot } from '../boxes/snapshots/present.ts'
import type { OperationRow, SnapshotRow } from '../db/schema.ts'
import type { Visibility } from '../db/where-visible.ts'
import { isVisible, type Resource } from '../http/visibility.ts'
import { presentOperation } from '../jobs/operations/service.ts'

/** Feeds with equal views get equal messages. */
export type FeedView = {
  visibility: Visibility
  /** Leaves out deleted boxes. */
  live: boolean
}

export type FeedItem = {
  kind: FeedKind
  id: string
  /** Decides which feeds get the item, or its removal. */
  resource: Resource
  /** The item as JSON; null: it is in no list any more. */
  json: string | null
  /** A deleted box, which is in the list of all boxes only. */
  isDeletedBox: boolean
}

export const toBoxItem = (row: ChangedBoxRow): FeedItem => ({
  kind: 'boxes',
  id: row.id,
  resource: { workspaceId: row.workspace_id, boxId: row.id, ownerUserId: row.owner_user_id },
  json: JSON.stringify(presentBox(row)),
  isDeletedBox: row.terminated_at !== null,
})

export const toSnapshotItem = (row: SnapshotRow): FeedItem => ({
  kind: 'snapshots',
  id: row.id,
  resource: { workspaceId: row.workspace_id, boxId: row.box_id, ownerUserId: row.owner_user_id },
  json: row.deleted_at === null ? JSON.stringify(presentSnapshot(row)) : null,
  isDeletedBox: false,
})

export const toOperationItem = (
  row: OperationRow,
  target: Pick<Resource, 'boxId' | 'ownerUserId'>,
): FeedItem => ({
  kind: 'operations',
  id: row.id,
  resource: { workspaceId: row.workspace_id, ...target },
  json: JSON.stringify(presentOperation(row)),
  isDeletedBox: false,
})

/** The JSON of the items that the view shows, and the ids of those that it shows no longer. */
export function selectItems(
  view: FeedView,
  items: readonly FeedItem[],
): { shown: string[]; removed: string[] } {
  const shown: string[] = []
  const removed: string[] = []
  for (const { id, resource, json, isDeletedBox } of items) {
    if (!isVisible(view.visibility, resource)) continue
    if (json === null || (isDeletedBox && view.live)) removed.push(id)
    else shown.push(json)
  }
  return { shown, removed }
}
