// Reads and writes the jobs of boxes. A box has at most one. A change of the job is a change of the box, whose detail has the job.
import type { Insertable, Updateable } from 'kysely'
import type { Db } from '../../db/open.ts'
import { recordRowChange } from '../../db/row-changes.ts'
import type { JobRow } from '../../db/schema.ts'
import type { Trx } from '../../db/transaction.ts'

export const findJob = (db: Db | Trx, boxId: string): Promise<JobRow | undefined> =>
  db.selectFrom('jobs').selectAll().where('box_id', '=', boxId).executeTakeFirst()

/** Inserts the box's job, or replaces its current job and keeps the lease on that job. */
export async function upsertJob(trx: Trx, row: Insertable<JobRow>): Promise<void> {
  recordRowChange(trx, { table: 'boxes', id: row.box_id })
  const { box_id: _boxId, lease_owner: _leaseOwner, lease_until: _leaseUntil, ...changes } = row
  await trx
    .insertInto('jobs')
    .values(row)
    .onConflict((conflict) => conflict.column('box_id').doUpdateSet(changes))
    .execute()
}

export async function updateJob(trx: Trx, boxId: string, changes: Updateable<JobRow>): Promise<void> {
  recordRowChange(trx, { table: 'boxes', id: boxId })
  await trx.updateTable('jobs').set(changes).where('box_id', '=', boxId).execute()
}

export async function deleteJob(trx: Trx, boxId: string): Promise<void> {
  recordRowChange(trx, { table: 'boxes', id: boxId })
  await trx.deleteFrom('jobs').where('box_id', '=', boxId).execute()
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
