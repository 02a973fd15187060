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

/** Boxes with a job that is due now and that nobody holds. */
export async function dueBoxes(db: Db, now: number): Promise<string[]> {
  const rows = await db
    .selectFrom('jobs')
    .select('box_id')
    .where((is) => is.or([is('next_retry_at', 'is', null), is('next_retry_at', '<=', now)]))
    .where((is) => is.or([is('lease_until', 'is', null), is('lease_until', '<=', now)]))
    .execute()
  return rows.map((row) => row.box_id)
}

/** When the next job comes due that is not due now: its retry, or the end of a lease that may not be renewed. */
export async function nextDue(db: Db, now: number): Promise<number | undefined> {
  const rows = await db
    .selectFrom('jobs')
    .select(['next_retry_at', 'lease_until'])
    .where((is) => is.or([is('next_retry_at', '>', now), is('lease_until', '>', now)]))
    .execute()
  const instants = rows.map((row) => Math.max(row.next_retry_at ?? 0, row.lease_until ?? 0))
  return instants.length === 0 ? undefined : instants.reduce((a, b) => Math.min(a, b))
}

/** Frees every job, and has machines started again that may have stopped while nobody looked. */
export async function reopenJobs(db: Db): Promise<void> {
  await db.updateTable('jobs').set({ lease_owner: null, lease_until: null }).execute()
  await db.updateTable('jobs').set({ step: 'start' }).where('step', '=', 'connect').execute()
}

/** Boxes that are not as desired although no job says so: suspended with the coordinator, for one. */
export async function unsettledBoxes(db: Db): Promise<string[]> {
  const rows = await db
    .selectFrom('boxes')
    .leftJoin('jobs', 'jobs.box_id', 'boxes.id')
    .select('boxes.id')
    .where('jobs.box_id', 'is', null)
    .where('boxes.terminated_at', 'is', null)
    .where('boxes.observed_state', '!=', 'provision_failed')
    .whereRef('boxes.desired_state', '!=', 'boxes.observed_state')
    .execute()
  return rows.map((row) => row.id)
}

/** Live boxes in one of these states, with whether a job is under way. */
export function boxesObserved(db: Db, states: readonly ObservedState[]) {
  return db
    .selectFrom('boxes')
    .leftJoin('jobs', 'jobs.box_id', 'boxes.id')
    .selectAll('boxes')
    .select('jobs.op as job_op')
    .where('boxes.observed_state', 'in', [...states])
    .execute()
}
