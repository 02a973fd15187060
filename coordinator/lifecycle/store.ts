// Database queries of the lifecycle: box states, jobs and state events.
import type { Insertable, Updateable } from 'kysely'
import type { ObservedState } from '../../shared/api/boxes.ts'
import { LIMITS } from '../../shared/limits.ts'
import type { Db } from '../db/open.ts'
import type { BoxRow, JobRow } from '../db/schema.ts'
import type { Trx } from '../db/transaction.ts'

export type { BoxRow, JobRow }

export const findBox = (db: Db | Trx, boxId: string): Promise<BoxRow | undefined> =>
  db.selectFrom('boxes').selectAll().where('id', '=', boxId).executeTakeFirst()

export const findJob = (db: Db | Trx, boxId: string): Promise<JobRow | undefined> =>
  db.selectFrom('jobs').selectAll().where('box_id', '=', boxId).executeTakeFirst()

export async function updateBox(trx: Trx, boxId: string, changes: Updateable<BoxRow>): Promise<BoxRow> {
  return trx
    .updateTable('boxes')
    .set(changes)
    .where('id', '=', boxId)
    .returningAll()
    .executeTakeFirstOrThrow()
}

/** Inserts the box's job, or replaces its current job and keeps the lease on that job. */
export async function upsertJob(trx: Trx, row: Insertable<JobRow>): Promise<void> {
  const { box_id: _boxId, lease_owner: _leaseOwner, lease_until: _leaseUntil, ...changes } = row
  await trx
    .insertInto('jobs')
    .values(row)
    .onConflict((conflict) => conflict.column('box_id').doUpdateSet(changes))
    .execute()
}

export const updateJob = (trx: Trx, boxId: string, changes: Updateable<JobRow>) =>
  trx.updateTable('jobs').set(changes).where('box_id', '=', boxId).execute()

export const deleteJob = (trx: Trx, boxId: string) =>
  trx.deleteFrom('jobs').where('box_id', '=', boxId).execute()

export type StateChange = {
  from: ObservedState | null
  to: ObservedState
  reason: string
  /** user:<id>, key:<id> or system. */
  actor: string
  /** Milliseconds since the epoch. */
  at: number
}

/** Inserts the state event and deletes the box's oldest events beyond LIMITS.boxEvents. */
export async function recordStateChange(trx: Trx, boxId: string, change: StateChange): Promise<void> {
  const { from, to, reason, actor, at } = change
  await trx
    .insertInto('box_events')
    .values({ box_id: boxId, from_state: from, to_state: to, reason, actor, at })
    .execute()
  const oldestKeptSeq = trx
    .selectFrom('box_events')
    .select('seq')
    .where('box_id', '=', boxId)
    .orderBy('seq', 'desc')
    .offset(LIMITS.boxEvents - 1)
    .limit(1)
  await trx.deleteFrom('box_events').where('box_id', '=', boxId).where('seq', '<', oldestKeptSeq).execute()
}

/**
 * Resets each job that waits for an agent to its start step: the machine may have stopped while no coordinator was running.
 * The jobs of enrolled machines have no such step.
 */
export const resetConnectSteps = (db: Db) =>
  db
    .updateTable('jobs')
    .set({ step: 'start' })
    .where('step', '=', 'connect')
    .where('op', 'not in', ['enroll', 'reconnect'])
    .execute()

/**
 * Ids of the boxes that are not in their desired state or have leftovers, and have no job, such as boxes that Ctrl-C
 * suspended. Excludes boxes whose provisioning failed.
 */
export async function listUnreconciledBoxIds(db: Db): Promise<string[]> {
  const rows = await db
    .selectFrom('boxes')
    .leftJoin('jobs', 'jobs.box_id', 'boxes.id')
    .select('boxes.id')
    .where('jobs.box_id', 'is', null)
    .where('boxes.terminated_at', 'is', null)
    .where('boxes.observed_state', '!=', 'provision_failed')
    .where((eb) =>
      eb.or([
        eb('boxes.observed_state', '!=', eb.ref('boxes.desired_state')),
        eb('boxes.leftovers', 'is not', null),
      ]),
    )
    .execute()
  return rows.map((row) => row.id)
}

/** Of the managed boxes: an enrolled machine has no files in a region. */
export const listLiveBoxRegions = (db: Db) =>
  db
    .selectFrom('boxes')
    .select(['id', 'region'])
    .where('terminated_at', 'is', null)
    .where('kind', '=', 'managed')
    .execute()

export const listLiveBoxNames = (db: Db) =>
  db.selectFrom('boxes').select(['id', 'hostname']).where('terminated_at', 'is', null).execute()

/** Live boxes in one of these states, with the operation of their job. `job_op` is null when the box has no job. */
export function listBoxesByObservedState(db: Db, states: readonly ObservedState[]) {
  return db
    .selectFrom('boxes')
    .leftJoin('jobs', 'jobs.box_id', 'boxes.id')
    .selectAll('boxes')
    .select('jobs.op as job_op')
    .where('boxes.terminated_at', 'is', null)
    .where('boxes.observed_state', 'in', [...states])
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
