// Queries on schedules.
import { isFreeFor } from '../db/is-alive.ts'
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

/** Claims a due schedule for a coordinator. Returns false when it is not due, or another one that is alive evaluates it. */
export async function claimSchedule(
  db: Db,
  { kind, target_id }: ScheduleKey,
  { owner, now }: { owner: string; now: number },
): Promise<boolean> {
  const { numUpdatedRows } = await db
    .updateTable('schedules')
    .set({ lease_owner: owner })
    .where('target_id', '=', target_id)
    .where('kind', '=', kind)
    .where('due_at', '<=', now)
    .where(isFreeFor(db, 'schedules', owner))
    .executeTakeFirstOrThrow()
  return numUpdatedRows > 0n
}

export async function releaseSchedule(
  db: Db,
  { kind, target_id }: ScheduleKey,
  owner: string,
): Promise<void> {
  await db
    .updateTable('schedules')
    .set({ lease_owner: null })
    .where('target_id', '=', target_id)
    .where('kind', '=', kind)
    .where('lease_owner', '=', owner)
    .execute()
}

export const deleteAllOf = (trx: Trx, targetId: string) =>
  trx.deleteFrom('schedules').where('target_id', '=', targetId).execute()
