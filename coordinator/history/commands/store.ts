// Queries on the command history.
import { sql } from 'kysely'
import type { Command } from '../../../shared/api/commands.ts'
import type { Db } from '../../db/open.ts'
import { prepareTrxQuery, prepareWrite } from '../../db/prepared-queries.ts'
import type { CommandRow } from '../../db/schema.ts'
import type { Trx } from '../../db/transaction.ts'
import { whereBefore } from '../../db/where-before.ts'
import type { PageCursor } from '../../http/page-cursor.ts'
import { deleteOutput } from './output-chunk-store.ts'

export type { CommandRow }

/** Returns the stored key with this name. Stores `key` first when there is none. */
export async function getOrCreateSigningKey(db: Db, name: string, key: string, now: number): Promise<string> {
  await db
    .insertInto('signing_keys')
    .values({ name, key, created_at: now })
    .onConflict((conflict) => conflict.doNothing())
    .execute()
  const row = await db
    .selectFrom('signing_keys')
    .select('key')
    .where('name', '=', name)
    .executeTakeFirstOrThrow()
  return row.key
}

/** Includes deleted records. */
export const findCommandById = (db: Db | Trx, id: string): Promise<CommandRow | undefined> =>
  db.selectFrom('commands').selectAll().where('id', '=', id).executeTakeFirst()

const selectForReports = prepareTrxQuery<CommandRow>((trx) =>
  trx.selectFrom('commands').selectAll().where('id', '=', ''),
)

/** Like findCommandById(). Runs for each reported command. */
export const findReportedCommand = async (trx: Trx, id: string): Promise<CommandRow | undefined> =>
  (await selectForReports(trx, [id]))[0]

/** All columns, in the order of the insert's parameters. */
const COLUMNS = [
  ...[
    'id',
    'box_id',
    'mode',
    'source',
    'command',
    'command_truncated',
    'cwd',
    'status',
    'exit_code',
    'signal',
  ],
  ...['pid', 'requested_at', 'started_at', 'finished_at', 'actor_kind', 'actor_user_id', 'actor_token_id'],
  ...['output_kept', 'stdout_bytes', 'stdout_start', 'stderr_bytes', 'stderr_start', 'deleted_at'],
] as (keyof CommandRow)[]
/** The columns that reports change. */
const REPORTED_COLUMNS = [
  ...['status', 'exit_code', 'signal', 'finished_at', 'stdout_bytes', 'stdout_start', 'stderr_bytes'],
  'stderr_start',
] as (keyof CommandRow)[]

const executeInsert = prepareWrite((db) =>
  db
    .insertInto('commands')
    .values(Object.fromEntries(COLUMNS.map((column) => [column, ''])) as unknown as CommandRow)
    .onConflict((conflict) => conflict.doNothing()),
)
const executeUpdate = prepareWrite((db) =>
  db
    .updateTable('commands')
    .set(Object.fromEntries(REPORTED_COLUMNS.map((column) => [column, ''])) as unknown as CommandRow)
    .where('id', '=', ''),
)

/** False when the record exists already. */
export const insertCommand = async (trx: Trx, row: CommandRow): Promise<boolean> =>
  (await executeInsert(
    trx,
    COLUMNS.map((column) => row[column]),
  )) > 0

export const updateReportedColumns = (trx: Trx, row: CommandRow): Promise<number> =>
  executeUpdate(trx, [...REPORTED_COLUMNS.map((column) => row[column]), row.id])

export const markRunningLost = (
  trx: Trx,
  boxId: string,
  { mode, except = [] }: { mode?: Command['mode']; except?: readonly string[] } = {},
) =>
  trx
    .updateTable('commands')
    .set({ status: 'lost' })
    .where('box_id', '=', boxId)
    // A literal, not a parameter: otherwise the planner cannot use the partial index on running commands.
    .where('status', '=', sql.lit('running'))
    .$if(mode !== undefined, (query) => query.where('mode', '=', mode ?? 'sync'))
    .$if(except.length > 0, (query) => query.where('id', 'not in', except))
    .execute()

export type CommandFilter = {
  boxId: string
  mode?: Command['mode'] | undefined
  status?: Command['status'] | undefined
  before?: PageCursor | undefined
  /** Milliseconds since the epoch: only commands that were requested before it. */
  to?: number | undefined
}

/** Newest first. */
export function listCommands(db: Db, filter: CommandFilter, limit: number): Promise<CommandRow[]> {
  const { boxId, mode, status, before, to } = filter
  let query = db
    .selectFrom('commands')
    .selectAll()
    .where('box_id', '=', boxId)
    .where('deleted_at', 'is', null)
  if (mode !== undefined) query = query.where('mode', '=', mode)
  if (status !== undefined) query = query.where('status', '=', status)
  if (before !== undefined) query = query.where(whereBefore('requested_at', before))
  if (to !== undefined) query = query.where('requested_at', '<', to)
  return query.orderBy('requested_at', 'desc').orderBy('id', 'desc').limit(limit).execute()
}

/** Deletes the content of records. The emptied row stays, so that a repeated report does not recreate the record. */
export async function eraseCommands(trx: Trx, ids: readonly string[], now: number): Promise<void> {
  if (ids.length === 0) return
  await deleteOutput(trx, ids)
  await trx
    .updateTable('commands')
    .set({
      deleted_at: now,
      command: null,
      cwd: null,
      actor_user_id: null,
      actor_token_id: null,
      stdout_start: 0,
      stdout_bytes: 0,
      stderr_start: 0,
      stderr_bytes: 0,
    })
    .where('id', 'in', [...ids])
    .execute()
}

/** `at`: null when the box has no record. With max() and a group, SQLite would read all records of the boxes. */
export async function selectNewestRequestTimes(
  db: Db,
  boxIds: readonly string[],
): Promise<{ boxId: string; at: number | null }[]> {
  const ids = sql.join(boxIds.map((id) => sql`(${id})`))
  // SQLite and PostgreSQL both name the column of a bare VALUES list column1.
  const { rows } = await sql<{ boxId: string; at: number | string | null }>`
    select column1 as "boxId", (
      select requested_at from commands where box_id = column1 and deleted_at is null
      order by requested_at desc, id desc limit 1
    ) as at from (values ${ids}) as v`.execute(db)
  return rows.map(({ boxId, at }) => ({ boxId, at: at === null ? null : Number(at) }))
}
