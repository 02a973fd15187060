// Writes what a box should be, and the job that leads there. The reconciler does the rest.
import type { DesiredState, JobOp } from '../../shared/api/boxes.ts'
import type { Trx } from '../db/transaction.ts'
import { plan } from './plan.ts'
import { type BoxRow, jobOf, putJob, recordChange, removeJob, updateBox, updateJob } from './store.ts'

export type Desire = {
  state: DesiredState
  actor: string
  now: number
  /** Of a delete. */
  operationId?: string
}

/** Records the first state and the create job of a box whose row was just inserted. */
export async function begin(
  trx: Trx,
  box: BoxRow,
  { actor, now }: Pick<Desire, 'actor' | 'now'>,
): Promise<void> {
  await recordChange(trx, box.id, { from: null, to: box.observed_state, reason: 'created', actor, at: now })
  await putJob(trx, newJob(box.id, 'create', 'provision', actor, now))
}

/** Sets the desired state of a box that the caller has locked, and what its job becomes by that. */
export async function desire(
  trx: Trx,
  box: BoxRow,
  { state, actor, now, operationId }: Desire,
): Promise<BoxRow> {
  const written = await updateBox(trx, box.id, { desired_state: state, updated_at: now })
  const job = (await jobOf(trx, box.id)) ?? null
  const next = plan({ desired: state, observed: box.observed_state, job })
  if (!next) {
    // A leased job's runner finds out by itself; taking the row away would free the box under its hands.
    if (job && job.lease_owner === null) await removeJob(trx, box.id)
  } else if (job && job.op === next.op) {
    await updateJob(trx, box.id, { actor, reason: null, next_retry_at: null })
  } else {
    await putJob(trx, {
      ...newJob(box.id, next.op, next.step, actor, now),
      operation_id: operationId ?? null,
    })
  }
  return written
}

export const newJob = (box_id: string, op: JobOp, step: string, actor: string, now: number) => ({
  box_id,
  op,
  step,
  attempt: 0,
  last_error: null,
  next_retry_at: null,
  lease_owner: null,
  lease_until: null,
  actor,
  reason: null,
  operation_id: null,
  created_at: now,
})
