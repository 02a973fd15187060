// Persists each lifecycle step: claims it under a lease before it runs and records the result afterwards.
import { newBoxToken } from '../../shared/ids.ts'
import { hashSecret } from '../account/keys.ts'
import type { Db } from '../db/open.ts'
import { type Trx, transaction } from '../db/transaction.ts'
import { completeOperation, startOperation } from '../operations/service.ts'
import { plan } from './plan.ts'
import { createJobRow } from './set-desired-state.ts'
import { setObservedState } from './set-observed-state.ts'
import {
  type BoxRow,
  deleteJob,
  findJob,
  type JobRow,
  lockBox,
  updateBox,
  updateJob,
  upsertJob,
} from './store.ts'
import { findStage, nextStage, OP_DEFINITIONS, type Step } from './transitions.ts'

/** `now` is in milliseconds since the epoch. */
export type Lease = { owner: string; now: number; leaseMs: number }

/** A step that no other coordinator runs until the lease expires. */
export type Claim = {
  box: BoxRow
  op: JobRow['op']
  step: Step
  /** Failed attempts so far. */
  attempt: number
  /** Set for the start step: a new token for each attempt, which replaces the previous one. The database stores its hash. */
  agentToken: string | null
  /** Who requested the job. */
  actor: string
}

/** 'settled': nothing to do. `dueAt`: when to try again, in milliseconds since the epoch. */
export type ClaimResult = { claim: Claim } | { dueAt: number } | 'settled'

/** Plans the box's next step and claims it, unless it is not due or another coordinator holds the lease. */
export function claimNextStep(db: Db, boxId: string, { owner, now, leaseMs }: Lease): Promise<ClaimResult> {
  return transaction(db, async (trx) => {
    const box = await lockBox(trx, boxId)
    if (!box) return 'settled'
    const job = (await findJob(trx, boxId)) ?? null
    if (job && job.lease_owner !== owner && (job.lease_until ?? 0) > now)
      return { dueAt: job.lease_until ?? now }
    const next = plan({ desired: box.desired_state, observed: box.observed_state, job })
    if (!next) {
      if (job) await deleteJob(trx, boxId)
      return 'settled'
    }
    const currentJob = job?.op === next.op ? job : null
    if (currentJob?.next_retry_at && currentJob.next_retry_at > now) {
      await updateJob(trx, boxId, { lease_owner: null, lease_until: null })
      return { dueAt: currentJob.next_retry_at }
    }
    const row = currentJob ?? createJobRow(boxId, next.op, next.step, job?.actor ?? 'system', now)
    await upsertJob(trx, { ...row, step: next.step, next_retry_at: null })
    await updateJob(trx, boxId, { lease_owner: owner, lease_until: now + leaseMs })
    const { state } = findStage(next.op, next.step)
    const updatedBox = await setObservedState(trx, box, state, eventReason(row), row.actor, now)
    if (row.operation_id !== null) await startOperation(trx, row.operation_id)
    const agentToken = next.step === 'start' ? await replaceAgentToken(trx, boxId) : null
    const { attempt, actor } = row
    return { claim: { box: updatedBox, op: next.op, step: next.step, attempt, agentToken, actor } }
  })
}

async function replaceAgentToken(trx: Trx, boxId: string): Promise<string> {
  const token = newBoxToken()
  await updateBox(trx, boxId, { agent_token_hash: hashSecret(token) })
  return token
}

const eventReason = (job: Pick<JobRow, 'op' | 'reason'>): string =>
  job.reason ?? OP_DEFINITIONS[job.op].reason

/** Extends the lease. Resolves to false when it is lost: another coordinator may be working on the box. */
export async function renewLease(db: Db, boxId: string, { owner, now, leaseMs }: Lease): Promise<boolean> {
  const { numUpdatedRows } = await db
    .updateTable('jobs')
    .set({ lease_until: now + leaseMs })
    .where('box_id', '=', boxId)
    .where('lease_owner', '=', owner)
    .executeTakeFirst()
  return numUpdatedRows > 0n
}

/** Releases the lease and leaves the job unchanged. */
export async function releaseLease(db: Db, boxId: string, owner: string): Promise<void> {
  await db
    .updateTable('jobs')
    .set({ lease_owner: null, lease_until: null })
    .where('box_id', '=', boxId)
    .where('lease_owner', '=', owner)
    .execute()
}

export type StepResult = {
  /** JSON. */
  isolation?: string | null
  /** The step to run next, instead of the following one. */
  skipTo?: Step
}

/**
 * Records that the step succeeded: the job moves to its next step, or finishes after the last one.
 * @returns whether the job has finished
 */
export function completeStep(
  db: Db,
  { box: { id: boxId }, op, step }: Claim,
  result: StepResult,
  { owner, now }: Pick<Lease, 'owner' | 'now'>,
): Promise<boolean> {
  return transaction(db, async (trx) => {
    const leased = await findLeasedJob(trx, boxId, owner)
    if (!leased) return false
    const { box, job } = leased
    // Also when the desired state has changed meanwhile: the machine has been created or started.
    if (result.isolation) await updateBox(trx, boxId, { isolation: result.isolation })
    if (job.op !== op || job.step !== step) return false
    const next = result.skipTo ? findStage(op, result.skipTo) : nextStage(op, step)
    if (next) await updateJob(trx, boxId, { step: next.step })
    else await finishJob(trx, box, job, now)
    return next === undefined
  })
}

async function finishJob(trx: Trx, box: BoxRow, job: JobRow, now: number): Promise<void> {
  const { finalState } = OP_DEFINITIONS[job.op]
  const updatedBox = await setObservedState(trx, box, finalState, eventReason(job), job.actor, now)
  if (job.op === 'wake') await updateBox(trx, box.id, { pauses_survived: box.pauses_survived + 1 })
  if (job.op === 'delete') {
    await updateBox(trx, box.id, { terminated_at: now, agent_token_hash: null })
    if (job.operation_id !== null) await completeOperation(trx, job.operation_id, now)
  }
  // The desired state may have changed meanwhile. The change also wrote its actor to this job.
  const next = plan({ desired: updatedBox.desired_state, observed: updatedBox.observed_state, job: null })
  if (next) await upsertJob(trx, createJobRow(box.id, next.op, next.step, job.actor, now))
  else await deleteJob(trx, box.id)
}

export type Failure = {
  message: string
  permanent: boolean
  /** When to retry after `failedAttempts` failures, in milliseconds since the epoch. */
  retryAt(failedAttempts: number): number
}

/** Whether the job fails when this attempt fails. */
export const isFinalAttempt = ({ op, attempt }: Claim, permanent: boolean): boolean => {
  const { maxAttempts } = OP_DEFINITIONS[op]
  return maxAttempts !== undefined && (permanent || attempt + 1 >= maxAttempts)
}

/** Records that the step failed: schedules a retry, or ends the job in its failure state after the last attempt. */
export function failStep(
  db: Db,
  claim: Claim,
  failure: Failure,
  { owner, now }: Pick<Lease, 'owner' | 'now'>,
): Promise<void> {
  const {
    box: { id: boxId },
    op,
    step,
    attempt,
  } = claim
  return transaction(db, async (trx) => {
    const leased = await findLeasedJob(trx, boxId, owner)
    if (!leased) return
    const { box, job } = leased
    if (job.op !== op || job.step !== step) return
    const { failureState } = OP_DEFINITIONS[op]
    if (failureState && isFinalAttempt(claim, failure.permanent)) {
      await setObservedState(trx, box, failureState, failure.message, job.actor, now)
      return void (await deleteJob(trx, boxId))
    }
    await updateJob(trx, boxId, {
      step: findStage(op, step).retryFrom ?? step,
      attempt: attempt + 1,
      last_error: failure.message,
      next_retry_at: failure.retryAt(attempt + 1),
      lease_owner: null,
      lease_until: null,
    })
  })
}

async function findLeasedJob(trx: Trx, boxId: string, owner: string) {
  const box = await lockBox(trx, boxId)
  const job = await findJob(trx, boxId)
  return box && job?.lease_owner === owner ? { box, job } : null
}
