// What is written about a box whose host has no coordinator that is alive. The host continues the jobs of its boxes when it returns.
import type { BoxRow } from '../../db/schema.ts'
import type { Trx } from '../../db/transaction.ts'
import { isUnavailable } from '../../replicas/hosts.ts'
import { recordBoxJob } from '../job-changes.ts'
import { findJob, updateJob, upsertJob } from '../store/jobs.ts'
import { createJobRow } from './set-desired-state.ts'
import { setObservedState } from './set-observed-state.ts'

const REASON = 'the machine that runs the box is not available'
const WAIT = 'The machine that runs the box is not available. The change continues when it is.'

/** Writes into the job of the box why no coordinator runs it, if that is the case. The caller has locked the box. */
export async function explainWait(trx: Trx, box: BoxRow, ownHost: string): Promise<void> {
  if (!(await isUnavailable(trx, box, ownHost))) return
  const job = await findJob(trx, box.id)
  if (job && job.last_error !== WAIT) await updateJob(trx, box.id, { last_error: WAIT })
}

/**
 * Records that a running box is degraded when its host has no coordinator. Its job recovers the box when the host returns. The
 * caller has locked the box.
 */
export async function degradeIfUnavailable(
  trx: Trx,
  box: BoxRow,
  ownHost: string,
  now: number,
): Promise<boolean> {
  if (box.observed_state !== 'running' || box.desired_state !== 'running') return false
  if (!(await isUnavailable(trx, box, ownHost))) return false
  const job = await findJob(trx, box.id)
  if (job && job.op !== 'clean_up' && job.op !== 'recover') return false
  const recovery = createJobRow(box.id, 'recover', 'inspect', 'system', now)
  await upsertJob(trx, { ...recovery, last_error: WAIT, reason: REASON })
  recordBoxJob(trx, box.id)
  await setObservedState(trx, box, 'degraded', REASON, 'system', now)
  return true
}
