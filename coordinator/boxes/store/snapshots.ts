// Reads and writes rows of snapshots and their jobs. Of the other directories, only the purge of a workspace
// writes the tables.
import type { Updateable } from 'kysely'
import { isOwnerAlive } from '../../db/is-alive.ts'
import { lockWorkspace } from '../../db/lock-workspace.ts'
import type { Db } from '../../db/open.ts'
import { recordRowChange } from '../../db/row-changes.ts'
import type { SnapshotJobRow, SnapshotRow } from '../../db/schema.ts'
import { forUpdate, type Trx } from '../../db/transaction.ts'
import { type Visibility, whereVisible } from '../../db/where-visible.ts'
import type { Resource } from '../../http/visibility.ts'

export type SnapshotFilter = {
  visibility: Visibility
  includeTransient: boolean
}

/** Newest first. */
export function listSnapshots(db: Db | Trx, filter: SnapshotFilter): Promise<SnapshotRow[]> {
  let query = db
    .selectFrom('snapshots')
    .selectAll()
    .where(whereVisible(filter.visibility, 'box_id'))
    .where('deleted_at', 'is', null)
  if (!filter.includeTransient) query = query.where('transient', '=', 0)
  return query.orderBy('created_at', 'desc').orderBy('id', 'desc').execute()
}

/** The snapshots that are not deleted, when billing is turned on. */
export const listSnapshotsToMeter = (db: Db, workspaceId: string): Promise<SnapshotRow[]> =>
  db
    .selectFrom('snapshots')
    .selectAll()
    .where('workspace_id', '=', workspaceId)
    .where('deleted_at', 'is', null)
    .execute()

export const listSnapshotsById = (db: Db, ids: readonly string[]): Promise<SnapshotRow[]> =>
  db.selectFrom('snapshots').selectAll().where('id', 'in', ids).execute()

export const findSnapshot = (db: Db | Trx, id: string): Promise<SnapshotRow | undefined> =>
  db.selectFrom('snapshots').selectAll().where('id', '=', id).executeTakeFirst()

/** Locks the row until the transaction ends. A box is locked before its snapshots, never after them. */
export const lockSnapshot = (trx: Trx, id: string): Promise<SnapshotRow | undefined> =>
  forUpdate(trx, trx.selectFrom('snapshots').selectAll().where('id', '=', id)).executeTakeFirst()

export const lockTemplate = (trx: Trx, workspaceId: string, name: string): Promise<SnapshotRow | undefined> =>
  forUpdate(
    trx,
    trx
      .selectFrom('snapshots')
      .selectAll()
      .where('workspace_id', '=', workspaceId)
      .where('template_name', '=', name),
  ).executeTakeFirst()

export async function insertSnapshot(trx: Trx, row: SnapshotRow): Promise<void> {
  recordRowChange(trx, { table: 'snapshots', id: row.id })
  await trx.insertInto('snapshots').values(row).execute()
}

export function updateSnapshot(trx: Trx, id: string, changes: Updateable<SnapshotRow>): Promise<SnapshotRow> {
  recordRowChange(trx, { table: 'snapshots', id })
  return trx
    .updateTable('snapshots')
    .set(changes)
    .where('id', '=', id)
    .returningAll()
    .executeTakeFirstOrThrow()
}

export async function deleteSnapshot(trx: Trx, id: string): Promise<void> {
  const row = await trx
    .deleteFrom('snapshots')
    .where('id', '=', id)
    .returning(['workspace_id', 'box_id', 'owner_user_id'])
    .executeTakeFirst()
  if (row === undefined) return
  const deleted = { workspaceId: row.workspace_id, boxId: row.box_id, ownerUserId: row.owner_user_id }
  recordRowChange(trx, { table: 'snapshots', id, deleted })
}

/** The snapshots that count towards the limit. Locks the workspace, so that concurrent requests do not exceed the limit. */
export async function countLimitedSnapshots(trx: Trx, workspaceId: string): Promise<number> {
  await lockWorkspace(trx, workspaceId)
  const { count } = await trx
    .selectFrom('snapshots')
    .select(({ fn }) => fn.countAll().as('count'))
    .where('workspace_id', '=', workspaceId)
    .where('deleted_at', 'is', null)
    .where('transient', '=', 0)
    .where('status', 'in', ['creating', 'available'])
    .executeTakeFirstOrThrow()
  return Number(count)
}

/** The fields of a snapshot that decide who may see its operations. A snapshot that has expired leaves no row. */
export async function findSnapshotResource(
  db: Db | Trx,
  id: string,
): Promise<Pick<Resource, 'boxId' | 'ownerUserId'>> {
  const row = await findSnapshot(db, id)
  return { boxId: row?.box_id ?? null, ownerUserId: row?.owner_user_id ?? null }
}

/** The fields of findSnapshotResource() of the snapshots that have a row. */
export const listSnapshotResources = (
  db: Db,
  ids: readonly string[],
): Promise<Pick<SnapshotRow, 'id' | 'box_id' | 'owner_user_id'>[]> =>
  db.selectFrom('snapshots').select(['id', 'box_id', 'owner_user_id']).where('id', 'in', ids).execute()

/** The snapshots of a box of one kind, newest first. */
export const listSnapshotsOfBox = (
  db: Db | Trx,
  boxId: string,
  kind: SnapshotRow['kind'],
): Promise<SnapshotRow[]> =>
  db
    .selectFrom('snapshots')
    .selectAll()
    .where('box_id', '=', boxId)
    .where('kind', '=', kind)
    .where('deleted_at', 'is', null)
    .orderBy('created_at', 'desc')
    .orderBy('id', 'desc')
    .execute()

export const listCreatingSnapshotsOfBox = (db: Db | Trx, boxId: string) =>
  db
    .selectFrom('snapshots')
    .select(['id', 'kind'])
    .where('box_id', '=', boxId)
    .where('status', '=', 'creating')
    .execute()

/** The snapshots whose deletion has not been requested. */
export async function listSnapshotIdsToRemove(db: Db, workspaceId: string, limit: number): Promise<string[]> {
  const rows = await db
    .selectFrom('snapshots')
    .select('id')
    .where('workspace_id', '=', workspaceId)
    .where('deleted_at', 'is', null)
    .where('status', '!=', 'deleting')
    .limit(limit)
    .execute()
  return rows.map(({ id }) => id)
}

export async function hasSnapshot(db: Db, workspaceId: string): Promise<boolean> {
  const query = db.selectFrom('snapshots').select('id').where('workspace_id', '=', workspaceId)
  return (await query.where('deleted_at', 'is', null).limit(1).executeTakeFirst()) !== undefined
}

/** Deletes the rows of snapshots that were deleted before the instant. */
export async function deleteSnapshotsDeletedBefore(db: Db, instant: number): Promise<number> {
  const { numDeletedRows } = await db
    .deleteFrom('snapshots')
    .where('deleted_at', 'is not', null)
    .where('deleted_at', '<', instant)
    .executeTakeFirst()
  return Number(numDeletedRows)
}

export const findSnapshotJob = (db: Db | Trx, snapshotId: string): Promise<SnapshotJobRow | undefined> =>
  db.selectFrom('snapshot_jobs').selectAll().where('snapshot_id', '=', snapshotId).executeTakeFirst()

/** Inserts the job of a snapshot, or replaces its current job and keeps the lease on that job. */
export async function upsertSnapshotJob(trx: Trx, row: SnapshotJobRow): Promise<void> {
  const { snapshot_id: _snapshotId, lease_owner: _leaseOwner, ...changes } = row
  await trx
    .insertInto('snapshot_jobs')
    .values(row)
    .onConflict((conflict) => conflict.column('snapshot_id').doUpdateSet(changes))
    .execute()
}

export const updateSnapshotJob = (trx: Trx, snapshotId: string, changes: Updateable<SnapshotJobRow>) =>
  trx.updateTable('snapshot_jobs').set(changes).where('snapshot_id', '=', snapshotId).execute()

export const deleteSnapshotJob = (trx: Trx, snapshotId: string) =>
  trx.deleteFrom('snapshot_jobs').where('snapshot_id', '=', snapshotId).execute()

export async function isFinalSnapshotCreating(trx: Trx, boxId: string): Promise<boolean> {
  const row = await trx
    .selectFrom('snapshots')
    .select('id')
    .where('box_id', '=', boxId)
    .where('kind', '=', 'final')
    .where('status', '=', 'creating')
    .executeTakeFirst()
  return row !== undefined
}

/** Whether files of the box are being captured. */
export async function hasRunningCapture(trx: Trx, boxId: string): Promise<boolean> {
  const row = await trx
    .selectFrom('snapshots')
    .innerJoin('snapshot_jobs', 'snapshot_jobs.snapshot_id', 'snapshots.id')
    .select('snapshots.id')
    .where('snapshots.box_id', '=', boxId)
    .where('snapshot_jobs.op', '=', 'create')
    .where(isOwnerAlive(trx, 'snapshot_jobs'))
    .executeTakeFirst()
  return row !== undefined
}

export async function findLastAutoSnapshotTime(trx: Trx, boxId: string): Promise<number | null> {
  const row = await trx
    .selectFrom('snapshots')
    .select('created_at')
    .where('box_id', '=', boxId)
    .where('kind', '=', 'auto')
    .where('status', '!=', 'failed')
    .orderBy('created_at', 'desc')
    .limit(1)
    .executeTakeFirst()
  return row?.created_at ?? null
}

/** The name that the snapshots of a box show, after the box got a new one. */
/** Gives the snapshots of a box, also deleted ones, to the new owner of the box. */
export async function setOwnerOfSnapshots(
  trx: Trx,
  boxId: string,
  ownerUserId: string,
  now: number,
): Promise<void> {
  const given = await trx
    .updateTable('snapshots')
    .set({ owner_user_id: ownerUserId, updated_at: now })
    .where('box_id', '=', boxId)
    .returning('id')
    .execute()
  for (const { id } of given) recordRowChange(trx, { table: 'snapshots', id })
}

export async function renameSourceBox(trx: Trx, boxId: string, hostname: string): Promise<void> {
  const renamed = await trx
    .updateTable('snapshots')
    .set({ source_hostname: hostname })
    .where('box_id', '=', boxId)
    .returning('id')
    .execute()
  for (const { id } of renamed) recordRowChange(trx, { table: 'snapshots', id })
}
