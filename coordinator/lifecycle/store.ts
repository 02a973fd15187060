// Rows the lifecycle reads and writes: a box's states, its job and its events.
import type { Insertable, Updateable } from 'kysely'
import type { ObservedState } from '../../shared/api/boxes.ts'
import { LIMITS } from '../../shared/limits.ts'
import type { Db } from '../db/open.ts'
import type { BoxRow, JobRow } from '../db/schema.ts'
import { locked, type Trx } from '../db/transaction.ts'

export type { BoxRow, JobRow }

export const boxById = (db: Db | Trx, boxId: string): Promise<BoxRow | undefined> =>
  db.selectFrom('boxes').selectAll().where('id', '=', boxId).executeTakeFirst()

/** The box, held by this transaction until it ends: changes of its states and job go one after the other. */
export const lockBox = (trx: Trx, boxId: string): Promise<BoxRow | undefined> =>
  locked(trx, trx.selectFrom('boxes').selectAll().where('id', '=', boxId)).executeTakeFirst()

export const jobOf = (db: Db | Trx, boxId: string): Promise<JobRow | undefined> =>
  db.selectFrom('jobs').selectAll().where('box_id', '=', boxId).executeTakeFirst()

export async function updateBox(trx: Trx, boxId: string, changes: Updateable<BoxRow>): Promise<BoxRow> {
  return trx
    .updateTable('boxes')
    .set(changes)
    .where('id', '=', boxId)
    .returningAll()
    .executeTakeFirstOrThrow()
}

/** Writes the job, in place of the box's earlier one; a lease that is held on that one stays. */
export async function putJob(trx: Trx, row: Insertable<JobRow>): Promise<void> {
  const { box_id: _, lease_owner: _owner, lease_until: _until, ...changes } = row
  await trx
    .insertInto('jobs')
    .values(row)
    .onConflict((conflict) => conflict.column('box_id').doUpdateSet(changes))
    .execute()
}

export const updateJob = (trx: Trx, boxId: string, changes: Updateable<JobRow>) =>
  trx.updateTable('jobs').set(changes).where('box_id', '=', boxId).execute()

export const removeJob = (trx: Trx, boxId: string) =>
  trx.deleteFrom('jobs').where('box_id', '=', boxId).execute()

export type StateChange = {
  from: ObservedState | null
  to: ObservedState
  reason: string
  actor: string
  at: number
}

/** Adds the event of a state change and lets go of those beyond the number that is kept. */
export async function recordChange(trx: Trx, boxId: string, change: StateChange): Promise<void> {
  const { from, to, reason, actor, at } = change
  await trx
    .insertInto('box_events')
    .values({ box_id: boxId, from_state: from, to_state: to, reason, actor, at })
    .execute()
  const oldest = trx
    .selectFrom('box_events')
    .select('seq')
    .where('box_id', '=', boxId)
    .orderBy('seq', 'desc')
    .offset(LIMITS.boxEvents - 1)
    .limit(1)
  await trx.deleteFrom('box_events').where('box_id', '=', boxId).where('seq', '<', oldest).execute()
}
