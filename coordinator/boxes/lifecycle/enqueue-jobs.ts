// Creates the jobs that are not the way to a new desired state. Call schedule(box.id) after the commit, as after setDesiredState().
import type { JobOp } from '../../../shared/api/boxes.ts'
import { newId } from '../../../shared/ids.ts'
import type { Region, Tier } from '../../../shared/tiers.ts'
import type { BoxRow } from '../../db/schema.ts'
import type { Trx } from '../../db/transaction.ts'
import { recordBoxJob } from '../job-changes.ts'
import { updateBox } from '../store/boxes.ts'
import { findJob, updateJob, upsertJob } from '../store/jobs.ts'
import type { MoveParams } from './moves.ts'
import { createJobRow } from './set-desired-state.ts'
import type { Step } from './transitions.ts'

export type JobRequest = {
  /** The reason of the box's state events, such as `stopped: frozen for 60 minutes`. */
  reason: string
  /** Default: system. */
  actor?: string
  /** Milliseconds since the epoch. */
  now: number
}

/**
 * Stops a frozen box, which stays suspended. The caller has locked the box.
 * @returns false, with no effect, when the box is not frozen or another job runs.
 */
export async function enqueueStop(trx: Trx, box: BoxRow, request: JobRequest): Promise<boolean> {
  if (box.suspended_as !== 'frozen' || !(await isIdle(trx, box))) return false
  await insertJob(trx, box, 'stop', 'stop', request)
  return true
}

/**
 * Lets a suspend stop the box instead of freezing it, and stops a frozen box. The caller has locked the box and set its
 * desired state.
 * @returns false when it had no effect
 */
export async function enqueueStopInsteadOfFreeze(
  trx: Trx,
  box: BoxRow,
  request: JobRequest,
): Promise<boolean> {
  const job = await findJob(trx, box.id)
  // The result of a freeze in progress does not finish the job then.
  if (job?.op !== 'suspend' || job.step !== 'freeze') return enqueueStop(trx, box, request)
  await updateJob(trx, box.id, { step: 'stop' })
  recordBoxJob(trx, box.id)
  return true
}

/**
 * Packs a suspended box into an archive and frees its disk. The caller has locked the box.
 * @returns false, with no effect, when the box is not suspended or another job runs.
 */
export async function enqueueSleep(trx: Trx, box: BoxRow, request: JobRequest): Promise<boolean> {
  if (!(await isIdle(trx, box))) return false
  await updateBox(trx, box.id, { archive_id: box.archive_id ?? newId('archive') })
  await insertJob(trx, box, 'sleep', box.suspended_as === 'frozen' ? 'stop' : 'archive', request)
  return true
}

/** Writes the tier. A running box gets it at once or restarts with it, and a frozen one is stopped. The caller has locked the box. */
export async function enqueueResize(trx: Trx, box: BoxRow, tier: Tier, request: JobRequest): Promise<BoxRow> {
  const resized = await updateBox(trx, box.id, { tier, updated_at: request.now })
  if (box.observed_state === 'running') await insertJob(trx, resized, 'resize', 'adjust', request)
  else await enqueueStop(trx, resized, request)
  return resized
}

/** Moves a running, suspended or sleeping box to the region. The caller has locked the box. */
export async function enqueueMove(
  trx: Trx,
  box: BoxRow,
  region: Region,
  request: JobRequest,
): Promise<BoxRow> {
  const moving = await updateBox(trx, box.id, {
    desired_region: region,
    archive_id: box.archive_id ?? newId('archive'),
    updated_at: request.now,
  })
  const isPacked = box.observed_state === 'deep_sleep'
  const params: MoveParams = { isPacked }
  await insertJob(trx, moving, 'move', isPacked ? 'transfer' : 'stop', request, params)
  return moving
}

/** Whether the box is in its desired state, and no job changes it. */
export async function isSettled(trx: Trx, box: BoxRow): Promise<boolean> {
  const state = box.observed_state === 'deep_sleep' ? 'suspended' : box.observed_state
  if (state !== box.desired_state) return false
  const job = await findJob(trx, box.id)
  return job === undefined || job.op === 'clean_up'
}

const isIdle = async (trx: Trx, box: BoxRow): Promise<boolean> =>
  box.observed_state === 'suspended' && isSettled(trx, box)

async function insertJob(
  trx: Trx,
  box: BoxRow,
  op: JobOp,
  step: Step,
  request: JobRequest,
  params: MoveParams | null = null,
): Promise<void> {
  await upsertJob(trx, {
    ...createJobRow(box.id, op, step, request.actor ?? 'system', request.now),
    reason: request.reason,
    params: params && JSON.stringify(params),
  })
  recordBoxJob(trx, box.id)
}
