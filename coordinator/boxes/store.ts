// Queries on boxes, their events and their jobs.
import type { Selectable, Updateable } from 'kysely'
import { LIMITS } from '../../shared/limits.ts'
import type { Db } from '../db/open.ts'
import { prepareQuery } from '../db/prepared-queries.ts'
import type { BoxEventRow, BoxRow, JobRow } from '../db/schema.ts'
import type { Trx } from '../db/transaction.ts'
import type { PageCursor } from '../http/page-cursor.ts'

export type BoxFilter = {
  workspaceId: string
  live: boolean
  /** Also leaves out boxes that are being deleted. */
  withoutDeleted?: boolean | undefined
  ownerUserId?: string | undefined
  ids?: readonly string[] | undefined
  before?: PageCursor | undefined
  limit?: number | undefined
}

/** Newest first. */
export function listBoxes(db: Db | Trx, filter: BoxFilter): Promise<BoxRow[]> {
  let query = db.selectFrom('boxes').selectAll().where('workspace_id', '=', filter.workspaceId)
  if (filter.live) query = query.where('terminated_at', 'is', null)
  if (filter.withoutDeleted)
    query = query.where('terminated_at', 'is', null).where('desired_state', '!=', 'terminated')
  if (filter.ownerUserId !== undefined) query = query.where('owner_user_id', '=', filter.ownerUserId)
  if (filter.ids) query = query.where('id', 'in', [...filter.ids])
  if (filter.before) {
    const { at, id } = filter.before
    query = query
      .where('created_at', '<=', at)
      .where((eb) => eb.or([eb('created_at', '<', at), eb('id', '<', id)]))
  }
  if (filter.limit !== undefined) query = query.limit(filter.limit)
  return query.orderBy('created_at', 'desc').orderBy('id', 'desc').execute()
}

export const updateBoxRow = (trx: Trx, id: string, changes: Updateable<BoxRow>): Promise<BoxRow> =>
  trx.updateTable('boxes').set(changes).where('id', '=', id).returningAll().executeTakeFirstOrThrow()

/** undefined: the box does not exist. */
export const findEnvVars = (db: Db, id: string): Promise<Pick<BoxRow, 'env_vars'> | undefined> =>
  db.selectFrom('boxes').select('env_vars').where('id', '=', id).executeTakeFirst()

/** The inserted row, or undefined when a live box of the workspace has the same name. */
export const insertBox = (trx: Trx, row: BoxRow): Promise<BoxRow | undefined> =>
  trx
    .insertInto('boxes')
    .values(row)
    .onConflict((conflict) => conflict.doNothing())
    .returningAll()
    .executeTakeFirst()

export async function listLiveNames(db: Db | Trx, workspaceId: string): Promise<Set<string>> {
  const rows = await db
    .selectFrom('boxes')
    .select('hostname')
    .where('workspace_id', '=', workspaceId)
    .where('terminated_at', 'is', null)
    .execute()
  return new Set(rows.map((row) => row.hostname))
}

/** Newest first. */
export const listBoxEvents = (db: Db | Trx, boxId: string): Promise<Selectable<BoxEventRow>[]> =>
  db
    .selectFrom('box_events')
    .selectAll()
    .where('box_id', '=', boxId)
    .orderBy('seq', 'desc')
    .limit(LIMITS.boxEvents)
    .execute()

/** Boxes terminated before the instant, oldest first. */
export async function listExpiredBoxIds(db: Db, terminatedBefore: number, limit: number): Promise<string[]> {
  const rows = await db
    .selectFrom('boxes')
    .select('id')
    .where('terminated_at', 'is not', null)
    .where('terminated_at', '<', terminatedBefore)
    .orderBy('terminated_at')
    .limit(limit)
    .execute()
  return rows.map(({ id }) => id)
}

/** The boxes whose deletion has not been requested. */
export async function listBoxIdsToRemove(db: Db, workspaceId: string, limit: number): Promise<string[]> {
  const rows = await db
    .selectFrom('boxes')
    .select('id')
    .where('workspace_id', '=', workspaceId)
    .where('terminated_at', 'is', null)
    .where('desired_state', '!=', 'terminated')
    .limit(limit)
    .execute()
  return rows.map(({ id }) => id)
}

export async function hasLiveBox(db: Db, workspaceId: string): Promise<boolean> {
  const query = db.selectFrom('boxes').select('id').where('workspace_id', '=', workspaceId)
  return (await query.where('terminated_at', 'is', null).limit(1).executeTakeFirst()) !== undefined
}

export async function listTerminatedBoxIds(db: Db, workspaceId: string, limit: number): Promise<string[]> {
  const rows = await db
    .selectFrom('boxes')
    .select('id')
    .where('workspace_id', '=', workspaceId)
    .where('terminated_at', 'is not', null)
    .limit(limit)
    .execute()
  return rows.map(({ id }) => id)
}

/** Returns the number of deleted rows. */
export async function deleteSomeEventsOfBox(trx: Trx, id: string, limit: number): Promise<number> {
  const oldest = trx
    .selectFrom('box_events')
    .select('seq')
    .where('box_id', '=', id)
    .orderBy('seq')
    .limit(limit)
  const { numDeletedRows } = await trx.deleteFrom('box_events').where('seq', 'in', oldest).executeTakeFirst()
  return Number(numDeletedRows)
}

/** Deletes the box with its events, metrics and process snapshots. Its commands must be deleted before. */
export async function deleteBox(trx: Trx, id: string): Promise<void> {
  await trx.deleteFrom('schedules').where('target_id', '=', id).execute()
  for (const table of ['jobs', 'box_events', 'box_moves', 'metric_chunks', 'process_chunks'] as const)
    await trx.deleteFrom(table).where('box_id', '=', id).execute()
  await trx.deleteFrom('boxes').where('id', '=', id).execute()
}

export const findJob = (db: Db | Trx, boxId: string): Promise<JobRow | undefined> =>
  db.selectFrom('jobs').selectAll().where('box_id', '=', boxId).executeTakeFirst()

export async function findFirstOwner(db: Db | Trx, workspaceId: string): Promise<string | undefined> {
  const row = await db
    .selectFrom('users')
    .select('id')
    .where('workspace_id', '=', workspaceId)
    .where('role', '=', 'owner')
    .where('removed_at', 'is', null)
    .orderBy('created_at')
    .orderBy('id')
    .limit(1)
    .executeTakeFirst()
  return row?.id
}

/** Every edge request runs one of these. */
export const prepareBoxQueries = (db: Db) => ({
  byId: prepareQuery<BoxRow, [id: string]>(db, (database) =>
    database.selectFrom('boxes').selectAll().where('id', '=', ''),
  ),
  /** Live boxes only. */
  byName: prepareQuery<BoxRow, [workspaceId: string, hostname: string]>(db, (database) =>
    database
      .selectFrom('boxes')
      .selectAll()
      .where('workspace_id', '=', '')
      .where('hostname', '=', '')
      .where('terminated_at', 'is', null),
  ),
})
