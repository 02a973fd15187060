// Queries on schedules.
import type { Db } from '../db/open.ts'
import type { ScheduleRow } from '../db/schema.ts'
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

export const findSchedule = (
  db: Db | Trx,
  { kind, target_id }: ScheduleKey,
): Promise<ScheduleRow | undefined> =>
  db
    .selectFrom('schedules')
    .selectAll()
    .where('target_id', '=', target_id)
    .where('kind', '=', kind)
    .executeTakeFirst()

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

export const moveSchedule = (db: Db | Trx, { kind, target_id }: ScheduleKey, due_at: number) =>
  db
    .updateTable('schedules')
    .set({ due_at })
    .where('target_id', '=', target_id)
    .where('kind', '=', kind)
    .execute()

export const deleteAllOf = (trx: Trx, targetId: string) =>
  trx.deleteFrom('schedules').where('target_id', '=', targetId).execute()
