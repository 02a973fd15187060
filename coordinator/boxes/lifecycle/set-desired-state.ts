// Writes a box's desired state and the job that leads to it. The reconciler runs the job.
import type { DesiredState, JobOp } from '../../../shared/api/boxes.ts'
import type { BoxRow } from '../../db/schema.ts'
import type { Trx } from '../../db/transaction.ts'
import { UNTIL_CONNECTED } from '../../jobs/leases.ts'
import { recordBoxJob } from '../job-changes.ts'
import { updateBox } from '../store/boxes.ts'
import { recordStateChange } from '../store/events.ts'
import { deleteJob, findJob, updateJob, upsertJob } from '../store/jobs.ts'
import { describeSituation, plan } from './plan.ts'
import { updateSchedules } from './update-schedules.ts'

export type DesiredStateChange = {
  state: DesiredState
  actor: string
  /** Milliseconds since the epoch. */
  now: number
  /** The operation that a delete completes. */
  operationId?: string
  /** The reason of the box's state events. Default: the operation's. */
  reason?: string
}

/** Records the initial state of a newly inserted box and its create job. */
export async function enqueueCreateJob(
  trx: Trx,
  box: BoxRow,
  { actor, now }: Pick<DesiredStateChange, 'actor' | 'now'>,
): Promise<void> {
  const change = { from: null, to: box.observed_state, reason: 'created', actor, at: now }
  await recordStateChange(trx, box.id, change)
  await upsertJob(trx, createJobRow(box.id, 'create', 'provision', actor, now))
  recordBoxJob(trx, box.id)
  await updateSchedules(trx, box, now)
}

/** Records the initial state of a machine that has been enrolled, and the job that waits for its agent. */
export async function enqueueEnrollJob(
  trx: Trx,
  box: BoxRow,
  { actor, now }: Pick<DesiredStateChange, 'actor' | 'now'>,
): Promise<void> {
  const change = { from: null, to: box.observed_state, reason: 'enrolled', actor, at: now }
  await recordStateChange(trx, box.id, change)
  const job = createJobRow(box.id, 'enroll', 'connect', actor, now)
  await upsertJob(trx, { ...job, next_retry_at: UNTIL_CONNECTED })
  recordBoxJob(trx, box.id)
}

/** Sets the desired state of a box and creates, updates or deletes its job to match. The caller has locked the box. */
export async function setDesiredState(
  trx: Trx,
  box: BoxRow,
  { state, actor, now, operationId, reason }: DesiredStateChange,
): Promise<BoxRow> {
  const updatedBox = await updateBox(trx, box.id, { desired_state: state, updated_at: now })
  const job = (await findJob(trx, box.id)) ?? null
  const next = plan(describeSituation(updatedBox, job))
  if (!next) {
    // Do not delete a leased job: its worker re-reads the desired state, and removing the row would release
    // the lease early.
    if (job && job.lease_owner === null) await deleteJob(trx, box.id)
  } else if (job && job.op === next.op) {
    await updateJob(trx, box.id, { actor, reason: reason ?? null, next_retry_at: null })
  } else {
    await upsertJob(trx, {
      ...createJobRow(box.id, next.op, next.step, actor, now),
      operation_id: operationId ?? null,
      reason: reason ?? null,
    })
  }
  recordBoxJob(trx, box.id)
  return updatedBox
}

export const createJobRow = (box_id: string, op: JobOp, step: string, actor: string, now: number) => ({
  box_id,
  op,
  step,
  attempt: 0,
  last_error: null,
  next_retry_at: null,
  lease_owner: null,
  actor,
  reason: null,
  operation_id: null,
  params: null,
  created_at: now,
})
