// Lists boxes, their names and counts, and the boxes that wait for a snapshot.
import { type SqlBool, sql } from 'kysely'
import type { ObservedState } from '../../../shared/api/boxes.ts'
import type { LabelSelector } from '../../../shared/labels.ts'
import { findUuidRange, isUuid } from '../../../shared/uuid.ts'
import { dialectTraits } from '../../db/dialects.ts'
import { isOwnerAlive } from '../../db/is-alive.ts'
import { isOnHost } from '../../db/is-on-host.ts'
import type { Db } from '../../db/open.ts'
import type { BoxRow } from '../../db/schema.ts'
import type { Trx } from '../../db/transaction.ts'
import { whereBefore } from '../../db/where-before.ts'
import { type Visibility, whereVisible } from '../../db/where-visible.ts'
import type { PageCursor } from '../../http/page-cursor.ts'

type Page = { before?: PageCursor | undefined; limit: number }

export type BoxFilter = {
  visibility: Visibility
  live: boolean
  /** true: the list also leaves out boxes that are being deleted. */
  withoutDeleted?: boolean | undefined
  /** Only the live box with this name, and the boxes with this id or whose id starts with it. */
  box?: string | undefined
  /** true: only deleted boxes; a name in `box` means the visible box that was deleted last. */
  deleted?: boolean | undefined
  /** Only the boxes with all of these labels. */
  labels?: readonly LabelSelector[] | undefined
} & Page

/** The ids of one statement. */
const MAX_IDS = 1000

/** Only the start of an id reads all boxes of the workspace. No name is a UUID. */
function whereNamed(text: string, { deleted, visibility }: Pick<BoxFilter, 'deleted' | 'visibility'>) {
  if (isUuid(text)) return sql<SqlBool>`id = ${text}`
  const hasName = deleted
    ? sql<SqlBool>`id = (${selectLastDeleted(text, visibility)})`
    : sql<SqlBool>`hostname = ${text} and terminated_at is null`
  const range = findUuidRange(text)
  return range === undefined ? hasName : sql<SqlBool>`(${hasName} or id between ${range[0]} and ${range[1]})`
}

/** The visible box with the name that was deleted last. */
const selectLastDeleted = (name: string, visibility: Visibility) =>
  sql`select id from boxes where ${whereVisible(visibility, 'id')} and hostname = ${name} and terminated_at is not null order by terminated_at desc, id desc limit 1`

/** Reads the labels of the boxes that the other conditions select. */
function whereLabeled(db: Db, { key, value }: LabelSelector) {
  const labels = dialectTraits(db).jsonType ? sql`cast(labels as json)` : sql`labels`
  const stored = sql<string | null>`(${labels} ->> cast(${key} as text))`
  return value === null ? sql<SqlBool>`${stored} is not null` : sql<SqlBool>`${stored} = ${value}`
}

const whereAfterPage = (before: PageCursor | undefined) =>
  before === undefined ? sql<SqlBool>`1 = 1` : whereBefore('created_at', before)

/** The columns of lists. Leaves out what the agent reports, which may be long. */
const LISTED_COLUMNS = [
  'id',
  'hostname',
  'kind',
  'tier',
  'region',
  'desired_region',
  'desired_state',
  'observed_state',
  'suspended_as',
  'auto_pause_min',
  'pause_at',
  'delete_at',
  'auto_snapshot_hours',
  'auto_snapshot_keep',
  'environment_id',
  'environment_version_no',
  'env_vars',
  'labels',
  'restricted',
  'owner_user_id',
  'quiet_hours_exempt',
  'image',
  'image_digest',
  'isolation',
  'created_at',
  'updated_at',
] as const satisfies (keyof BoxRow)[]
export type ListedBoxRow = Pick<BoxRow, (typeof LISTED_COLUMNS)[number]>

/** Newest first. */
export function listBoxes(db: Db, filter: BoxFilter): Promise<ListedBoxRow[]> {
  let query = db.selectFrom('boxes').select(LISTED_COLUMNS).where(whereVisible(filter.visibility, 'id'))
  if (filter.live) query = query.where('terminated_at', 'is', null)
  if (filter.withoutDeleted)
    query = query.where('terminated_at', 'is', null).where('desired_state', '!=', 'terminated')
  if (filter.deleted) query = query.where('terminated_at', 'is not', null)
  if (filter.box !== undefined) query = query.where(whereNamed(filter.box, filter))
  for (const label of filter.labels ?? []) query = query.where(whereLabeled(db, label))
  return query
    .where(whereAfterPage(filter.before))
    .orderBy('created_at', 'desc')
    .orderBy('id', 'desc')
    .limit(filter.limit)
    .execute()
}

export type ChangedBoxRow = ListedBoxRow & Pick<BoxRow, 'workspace_id' | 'terminated_at'>

/** The boxes of all workspaces with these ids. */
export const listBoxesById = (db: Db, ids: readonly string[]): Promise<ChangedBoxRow[]> =>
  db
    .selectFrom('boxes')
    .select([...LISTED_COLUMNS, 'workspace_id', 'terminated_at'])
    .where('id', 'in', ids)
    .execute()

/** The hostnames of the boxes that are stored, also of deleted ones, by id. */
export async function listHostnames(
  db: Db,
  workspaceId: string,
  ids: readonly string[],
): Promise<Map<string, string>> {
  const hostnames = new Map<string, string>()
  for (let start = 0; start < ids.length; start += MAX_IDS) {
    const rows = await db
      .selectFrom('boxes')
      .select(['id', 'hostname'])
      .where('id', 'in', ids.slice(start, start + MAX_IDS))
      .where('workspace_id', '=', workspaceId)
      .execute()
    for (const { id, hostname } of rows) hostnames.set(id, hostname)
  }
  return hostnames
}

export const listBoxOwners = (
  db: Db,
  ids: readonly string[],
): Promise<Pick<BoxRow, 'id' | 'owner_user_id'>[]> =>
  db.selectFrom('boxes').select(['id', 'owner_user_id']).where('id', 'in', ids).execute()

export type TeamBoxRow = Pick<
  BoxRow,
  | 'id'
  | 'hostname'
  | 'tier'
  | 'desired_state'
  | 'observed_state'
  | 'owner_user_id'
  | 'vitals'
  | 'last_heartbeat_at'
  | 'created_at'
>

/** A page of the live boxes, newest first. Without the lists of variables and ports, which may be long. */
export const listTeamBoxes = (
  db: Db,
  visibility: Visibility,
  { before, limit }: Page,
): Promise<TeamBoxRow[]> =>
  db
    .selectFrom('boxes')
    .select(['id', 'hostname', 'tier', 'desired_state', 'observed_state', 'owner_user_id', 'vitals'])
    .select(['last_heartbeat_at', 'created_at'])
    .where(whereVisible(visibility, 'id'))
    .where('terminated_at', 'is', null)
    .where(whereAfterPage(before))
    .orderBy('created_at', 'desc')
    .orderBy('id', 'desc')
    .limit(limit)
    .execute()

export async function listLiveNames(db: Db | Trx, workspaceId: string): Promise<Set<string>> {
  const rows = await db
    .selectFrom('boxes')
    .select('hostname')
    .where('workspace_id', '=', workspaceId)
    .where('terminated_at', 'is', null)
    .execute()
  return new Set(rows.map((row) => row.hostname))
}

type Position = Pick<BoxRow, 'id' | 'created_at'>

/** The rows after the position of a list that is ordered by created_at and id. */
const whereAfter = (position: Position | undefined) =>
  position === undefined
    ? sql<SqlBool>`1 = 1`
    : sql<SqlBool>`(created_at >= ${position.created_at} and (created_at > ${position.created_at} or id > ${position.id}))`

/** The boxes of a workspace, oldest first. Includes terminated boxes, whose history is still readable. */
export function listBoxPositions(
  db: Db,
  workspaceId: string,
  after: Position | undefined,
  limit: number,
): Promise<Position[]> {
  const query = db.selectFrom('boxes').select(['id', 'created_at']).where('workspace_id', '=', workspaceId)
  return query.where(whereAfter(after)).orderBy('created_at').orderBy('id').limit(limit).execute()
}

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

/** The boxes that the user has created and that are not deleted or being deleted. */
export async function countLiveBoxes(trx: Trx, workspaceId: string, userId: string): Promise<number> {
  const { count } = await trx
    .selectFrom('boxes')
    .select(({ fn }) => fn.countAll().as('count'))
    .where('workspace_id', '=', workspaceId)
    .where('owner_user_id', '=', userId)
    .where('terminated_at', 'is', null)
    .where('desired_state', '!=', 'terminated')
    .executeTakeFirstOrThrow()
  return Number(count)
}

/** The boxes of the workspace that are not deleted or being deleted. */
export async function countLiveBoxesOfWorkspace(trx: Trx, workspaceId: string): Promise<number> {
  const { count } = await trx
    .selectFrom('boxes')
    .select(({ fn }) => fn.countAll().as('count'))
    .where('workspace_id', '=', workspaceId)
    .where('terminated_at', 'is', null)
    .where('desired_state', '!=', 'terminated')
    .executeTakeFirstOrThrow()
  return Number(count)
}

/** The boxes that are not deleted, when billing is turned on. */
export const listBoxesToMeter = (db: Db, workspaceId: string): Promise<BoxRow[]> =>
  db
    .selectFrom('boxes')
    .selectAll()
    .where('workspace_id', '=', workspaceId)
    .where('terminated_at', 'is', null)
    .execute()

/** A page of the managed boxes that run or start and are not exempt from quiet hours, oldest first. */
export function listBoxesToQuiet(
  db: Db,
  workspaceId: string,
  after: Position | undefined,
  limit: number,
): Promise<Position[]> {
  const query = db
    .selectFrom('boxes')
    .select(['id', 'created_at'])
    .where('workspace_id', '=', workspaceId)
    .where('terminated_at', 'is', null)
    .where('desired_state', '=', 'running')
    .where('kind', '=', 'managed')
    .where('quiet_hours_exempt', '=', 0)
  return query.where(whereAfter(after)).orderBy('created_at').orderBy('id').limit(limit).execute()
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

/**
 * Ids of the boxes of the host that are not in their desired state or have leftovers, and have no job, such as boxes that Ctrl-C
 * suspended. Excludes boxes whose provisioning failed.
 */
export async function listUnreconciledBoxIds(db: Db, host: string): Promise<string[]> {
  const rows = await db
    .selectFrom('boxes')
    .leftJoin('jobs', 'jobs.box_id', 'boxes.id')
    .select('boxes.id')
    .where('jobs.box_id', 'is', null)
    .where('boxes.terminated_at', 'is', null)
    .where('boxes.observed_state', '!=', 'provision_failed')
    .where(isOnHost('boxes', host))
    .where((eb) =>
      eb.or([
        eb('boxes.observed_state', '!=', eb.ref('boxes.desired_state')),
        eb('boxes.leftovers', 'is not', null),
      ]),
    )
    .execute()
  return rows.map((row) => row.id)
}

/** The live boxes of the host: an enrolled machine, and the box of an engine, have no files in the directory of a region. */
export const listLocalBoxRegions = (db: Db, host: string) =>
  db
    .selectFrom('boxes')
    .select(['id', 'region'])
    .where('terminated_at', 'is', null)
    .where('kind', '=', 'managed')
    .where('provider', '=', 'local')
    .where(isOnHost('boxes', host))
    .execute()

export const listLiveBoxNames = (db: Db) =>
  db.selectFrom('boxes').select(['id', 'hostname']).where('terminated_at', 'is', null).execute()

/** Live boxes of the host in one of these states, and enrolled machines, with the operation of their job. `job_op` is null when the box has no job. */
export function listBoxesByObservedState(db: Db, states: readonly ObservedState[], host: string) {
  return db
    .selectFrom('boxes')
    .leftJoin('jobs', 'jobs.box_id', 'boxes.id')
    .selectAll('boxes')
    .select('jobs.op as job_op')
    .where('boxes.terminated_at', 'is', null)
    .where('boxes.observed_state', 'in', [...states])
    .where(isOnHost('boxes', host))
    .execute()
}

/** The number of live boxes in each observed state. Reads every live box. */
export async function countBoxesByObservedState(db: Db): Promise<Map<ObservedState, number>> {
  const rows = await db
    .selectFrom('boxes')
    .select(({ fn }) => ['observed_state', fn.countAll().as('count')])
    .where('terminated_at', 'is', null)
    .groupBy('observed_state')
    .execute()
  return new Map(rows.map(({ observed_state, count }) => [observed_state, Number(count)]))
}

/** A page of the boxes that are not deleted, newest first. */
export const listAgents = (db: Db, workspaceId: string, { before, limit }: Page) =>
  db
    .selectFrom('boxes')
    .select(['id', 'hostname', 'host', 'agent_version', 'created_at'])
    .where('workspace_id', '=', workspaceId)
    .where('terminated_at', 'is', null)
    .where('desired_state', '!=', 'terminated')
    .where(whereAfterPage(before))
    .orderBy('created_at', 'desc')
    .orderBy('id', 'desc')
    .limit(limit)
    .execute()

/** Lists the boxes that may wait for the snapshot: its own and those created from it. Leaves out boxes whose step is running. */
export async function listWaitingBoxIds(db: Db, snapshotId: string): Promise<string[]> {
  const rows = await db
    .selectFrom('jobs')
    .innerJoin('boxes', 'boxes.id', 'jobs.box_id')
    .select('boxes.id')
    .where((eb) => eb.not(isOwnerAlive(db, 'jobs')))
    .where((eb) =>
      eb.or([
        eb('boxes.source_snapshot_id', '=', snapshotId),
        eb('boxes.id', '=', eb.selectFrom('snapshots').select('box_id').where('id', '=', snapshotId)),
      ]),
    )
    .execute()
  return rows.map(({ id }) => id)
}
