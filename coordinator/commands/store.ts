// Rows of the command history.
import { sql } from 'kysely'
import type { Command } from '../../shared/api/commands.ts'
import { hotQuery, preparedWrite } from '../db/hot.ts'
import type { Db } from '../db/open.ts'
import type { CommandRow } from '../db/schema.ts'
import type { Trx } from '../db/transaction.ts'
import { removeOutput } from './output-chunks.ts'

export type { CommandRow }

/** The key of that name: the one that is there, else this one. */
export async function sealingKey(db: Db, name: string, key: string, now: number): Promise<string> {
  await db
    .insertInto('sealing_keys')
    .values({ name, key, created_at: now })
    .onConflict((conflict) => conflict.doNothing())
    .execute()
  const row = await db
    .selectFrom('sealing_keys')
    .select('key')
    .where('name', '=', name)
    .executeTakeFirstOrThrow()
  return row.key
}

/** A deleted one too. */
export const commandById = (db: Db | Trx, id: string): Promise<CommandRow | undefined> =>
  db.selectFrom('commands').selectAll().where('id', '=', id).executeTakeFirst()

/** In the order of the parameters below. */
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
/** What reports change. */
const REPORTED = [
  ...['status', 'exit_code', 'signal', 'finished_at', 'stdout_bytes', 'stdout_start', 'stderr_bytes'],
  'stderr_start',
] as (keyof CommandRow)[]

const commandInsert = preparedWrite((db) =>
  db
    .insertInto('commands')
    .values(Object.fromEntries(COLUMNS.map((column) => [column, ''])) as unknown as CommandRow)
    .onConflict((conflict) => conflict.doNothing()),
)
const commandUpdate = preparedWrite((db) =>
  db
    .updateTable('commands')
    .set(Object.fromEntries(REPORTED.map((column) => [column, ''])) as unknown as CommandRow)
    .where('id', '=', ''),
)

/** False when there is such a record already. */
export const insertCommand = async (trx: Trx, row: CommandRow): Promise<boolean> =>
  (await commandInsert(
    trx,
    COLUMNS.map((column) => row[column]),
  )) > 0

export const updateReported = (trx: Trx, row: CommandRow): Promise<number> =>
  commandUpdate(trx, [...REPORTED.map((column) => row[column]), row.id])

export const loseRunning = (trx: Trx, boxId: string, mode?: Command['mode']) =>
  trx
    .updateTable('commands')
    .set({ status: 'lost' })
    .where('box_id', '=', boxId)
    // As a literal, or the planner cannot tell that the index of what runs has them all.
    .where('status', '=', sql.lit('running'))
    .$if(mode !== undefined, (query) => query.where('mode', '=', mode ?? 'sync'))
    .execute()

export type PageStart = { requestedAt: number; id: string }
export type CommandFilter = {
  boxId: string
  mode?: Command['mode'] | undefined
  status?: Command['status'] | undefined
  before?: PageStart | undefined
}

/** Newest first. */
export function listCommands(db: Db, filter: CommandFilter, limit: number): Promise<CommandRow[]> {
  const { boxId, mode, status, before } = filter
  let query = db
    .selectFrom('commands')
    .selectAll()
    .where('box_id', '=', boxId)
    .where('deleted_at', 'is', null)
  if (mode !== undefined) query = query.where('mode', '=', mode)
  if (status !== undefined) query = query.where('status', '=', status)
  if (before !== undefined) {
    const { requestedAt, id } = before
    query = query
      .where('requested_at', '<=', requestedAt)
      .where((is) => is.or([is('requested_at', '<', requestedAt), is('id', '<', id)]))
  }
  return query.orderBy('requested_at', 'desc').orderBy('id', 'desc').limit(limit).execute()
}

/** Leaves of each record only that it was there. */
export async function eraseCommands(trx: Trx, ids: readonly string[], now: number): Promise<void> {
  if (ids.length === 0) return
  await removeOutput(trx, ids)
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

/** Asked for each command that runs. */
export const retentionLookup = (db: Db) =>
  hotQuery<{ zero_data_retention: 0 | 1 }, [workspaceId: string]>(db, (q) =>
    q.selectFrom('workspaces').select('zero_data_retention').where('id', '=', ''),
  )
