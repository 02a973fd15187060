// Queries on schedules.
import type { Db } from '../db/open.ts'
import type { BoxRow, ScheduleKind, ScheduleRow } from '../db/schema.ts'
import { forUpdate, type Trx } from '../db/transaction.ts'

export type ScheduleKey = Pick<ScheduleRow, 'kind' | 'target_id'>

export const listDueSchedules = (db: Db, now: number): Promise<ScheduleKey[]> =>
  db
    .selectFrom('schedules')
    .select(['kind', 'target_id'])
    .where('due_at', '<=', now)
    .orderBy('due_at')
    .execute()

/** The earliest due time after `now`. */
export async function findNextDueTime(db: Db, now: number): Promise<number | undefined> {
  const row = await db
    .selectFrom('schedules')
    .select('due_at')
    .where('due_at', '>', now)
    .orderBy('due_at')
    .limit(1)
    .executeTakeFirst()
  return row?.due_at
}

export const listSchedulesOf = (trx: Trx, targetId: string): Promise<ScheduleRow[]> =>
  trx.selectFrom('schedules').selectAll().where('target_id', '=', targetId).execute()

/** Locks the row: another evaluation of the same schedule waits, and then reads the new due time. */
export const lockSchedule = (trx: Trx, { kind, target_id }: ScheduleKey): Promise<ScheduleRow | undefined> =>
  forUpdate(
    trx,
    trx.selectFrom('schedules').selectAll().where('target_id', '=', target_id).where('kind', '=', kind),
  ).executeTakeFirst()

export const upsertSchedule = (trx: Trx, row: ScheduleRow) =>
  trx
    .insertInto('schedules')
    .values(row)
    .onConflict((conflict) => conflict.columns(['target_id', 'kind']).doUpdateSet({ due_at: row.due_at }))
    .execute()

/** Keeps the due time of an existing schedule. */
export const insertMissingSchedule = (trx: Trx, row: ScheduleRow) =>
  trx
    .insertInto('schedules')
    .values(row)
    .onConflict((conflict) => conflict.doNothing())
    .execute()

export const deleteSchedule = (trx: Trx, { kind, target_id }: ScheduleKey) =>
  trx.deleteFrom('schedules').where('target_id', '=', target_id).where('kind', '=', kind).execute()

/** Whether a change of the box's state is in progress. */
export async function hasJob(trx: Trx, boxId: string): Promise<boolean> {
  const job = await trx.selectFrom('jobs').select('op').where('box_id', '=', boxId).executeTakeFirst()
  return job !== undefined && job.op !== 'clean_up'
}

/** Locks the snapshot like the transactions that change it. */
export const lockSnapshot = (trx: Trx, id: string) =>
  forUpdate(trx, trx.selectFrom('snapshots').select('id').where('id', '=', id)).executeTakeFirst()

export const moveSchedule = (db: Db | Trx, { kind, target_id }: ScheduleKey, due_at: number) =>
  db
    .updateTable('schedules')
    .set({ due_at })
    .where('target_id', '=', target_id)
    .where('kind', '=', kind)
    .execute()

export const clearDeadline = (trx: Trx, id: string, now: number) =>
  trx.updateTable('boxes').set({ pause_at: null, updated_at: now }).where('id', '=', id).execute()

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

/** The box that has been frozen for the longest time. */
export async function findOldestFrozenBoxId(db: Db): Promise<string | undefined> {
  const row = await db
    .selectFrom('boxes')
    .select('id')
    .where('suspended_as', '=', 'frozen')
    .where('observed_state', '=', 'suspended')
    .orderBy('state_since')
    .limit(1)
    .executeTakeFirst()
  return row?.id
}

export type { BoxRow, ScheduleKind, ScheduleRow }
