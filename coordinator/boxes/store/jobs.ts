// Reads and writes the jobs of boxes. A box has at most one. A change of the job is a change of the box, whose detail has the job.
import type { Insertable, Updateable } from 'kysely'
import { isOwnerAlive } from '../../db/is-alive.ts'
import type { Db } from '../../db/open.ts'
import { recordRowChange } from '../../db/row-changes.ts'
import type { JobRow } from '../../db/schema.ts'
import type { Trx } from '../../db/transaction.ts'

export const findJob = (db: Db | Trx, boxId: string): Promise<JobRow | undefined> =>
  db.selectFrom('jobs').selectAll().where('box_id', '=', boxId).executeTakeFirst()

/** Inserts the box's job, or replaces its current job and keeps the lease on that job. */
export async function upsertJob(trx: Trx, row: Insertable<JobRow>): Promise<void> {
  recordRowChange(trx, { table: 'boxes', id: row.box_id })
  const { box_id: _boxId, lease_owner: _leaseOwner, ...changes } = row
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

/** Whether a coordinator runs a step of the box. */
export async function isStepRunning(trx: Trx, boxId: string): Promise<boolean> {
  const query = trx.selectFrom('jobs').select('box_id').where('box_id', '=', boxId)
  return (await query.where(isOwnerAlive(trx, 'jobs')).executeTakeFirst()) !== undefined
}
