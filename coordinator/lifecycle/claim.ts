// The persisted points of a lifecycle change: before a step it is claimed, after it the outcome is written.
import { newBoxToken } from '../../shared/ids.ts'
import { hashOf } from '../account/keys.ts'
import type { Db } from '../db/open.ts'
import { type Trx, transaction } from '../db/transaction.ts'
import { operationCompleted, operationProcessing } from '../operations/service.ts'
import { newJob } from './desire.ts'
import { enter } from './enter.ts'
import { plan } from './plan.ts'
import { type BoxRow, type JobRow, jobOf, lockBox, putJob, removeJob, updateBox, updateJob } from './store.ts'
import { OPS, type Step, stageAfter, stageOf } from './transitions.ts'

export type Lease = { owner: string; now: number; leaseMs: number }

/** A step that nobody else runs until the lease ends. */
export type Claim = {
  box: BoxRow
  op: JobRow['op']
  step: Step
  /** Failures so far. */
  attempt: number
  /** For the provision step: new with each try; its hash is stored. */
  agentToken: string | null
}

export type Claimed = { claim: Claim } | { dueAt: number } | 'settled'

/** Plans anew and claims the box's next step, unless it has none, is not due, or is somebody else's now. */
export function claimNext(db: Db, boxId: string, { owner, now, leaseMs }: Lease): Promise<Claimed> {
  return transaction(db, async (trx) => {
    const box = await lockBox(trx, boxId)
    if (!box) return 'settled'
    const job = (await jobOf(trx, boxId)) ?? null
    if (job && job.lease_owner !== owner && (job.lease_until ?? 0) > now)
      return { dueAt: job.lease_until ?? now }
    const next = plan({ desired: box.desired_state, observed: box.observed_state, job })
    if (!next) {
      if (job) await removeJob(trx, boxId)
      return 'settled'
    }
    const goesOn = job?.op === next.op ? job : null
    if (goesOn?.next_retry_at && goesOn.next_retry_at > now) {
      await updateJob(trx, boxId, { lease_owner: null, lease_until: null })
      return { dueAt: goesOn.next_retry_at }
    }
    const row = goesOn ?? newJob(boxId, next.op, next.step, job?.actor ?? 'system', now)
    await putJob(trx, { ...row, step: next.step, next_retry_at: null })
    await updateJob(trx, boxId, { lease_owner: owner, lease_until: now + leaseMs })
    const entered = await enter(trx, box, stageOf(next.op, next.step).state, reasonOf(row), row.actor, now)
    if (row.operation_id !== null) await operationProcessing(trx, row.operation_id)
    const agentToken = next.step === 'provision' ? await newAgentToken(trx, boxId) : null
    return { claim: { box: entered, op: next.op, step: next.step, attempt: row.attempt, agentToken } }
  })
}

async function newAgentToken(trx: Trx, boxId: string): Promise<string> {
  const token = newBoxToken()
  await updateBox(trx, boxId, { agent_token_hash: hashOf(token) })
  return token
}

const reasonOf = (job: Pick<JobRow, 'op' | 'reason'>): string => job.reason ?? OPS[job.op].reason

/** Keeps the lease. False when it is lost: another coordinator may be at the box. */
export async function renew(db: Db, boxId: string, { owner, now, leaseMs }: Lease): Promise<boolean> {
  const { numUpdatedRows } = await db
    .updateTable('jobs')
    .set({ lease_until: now + leaseMs })
    .where('box_id', '=', boxId)
    .where('lease_owner', '=', owner)
    .executeTakeFirst()
  return numUpdatedRows > 0n
}

/** Gives the job back as it stands. */
export async function release(db: Db, boxId: string, owner: string): Promise<void> {
  await db
    .updateTable('jobs')
    .set({ lease_owner: null, lease_until: null })
    .where('box_id', '=', boxId)
    .where('lease_owner', '=', owner)
    .execute()
}

export type StepResult = {
  isolation?: string | null
  /** Leaves out the steps in between. */
  goTo?: Step
}

/** Writes that the step is done: on to the next one, or the operation's end. */
export function stepDone(
  db: Db,
  { box: { id: boxId }, op, step }: Claim,
  result: StepResult,
  { owner, now }: Pick<Lease, 'owner' | 'now'>,
): Promise<void> {
  return transaction(db, async (trx) => {
    const held = await heldJob(trx, boxId, owner)
    if (!held) return
    const { box, job } = held
    // A machine was made or started, whatever is wanted by now.
    if (result.isolation) await updateBox(trx, boxId, { isolation: result.isolation })
    if (job.op !== op || job.step !== step) return
    const next = result.goTo ? stageOf(op, result.goTo) : stageAfter(op, step)
    if (next) return void (await updateJob(trx, boxId, { step: next.step }))
    await finish(trx, box, job, now)
  })
}

async function finish(trx: Trx, box: BoxRow, job: JobRow, now: number): Promise<void> {
  const { end } = OPS[job.op]
  const ended = await enter(trx, box, end, reasonOf(job), job.actor, now)
  if (job.op === 'wake') await updateBox(trx, box.id, { pauses_survived: box.pauses_survived + 1 })
  if (job.op === 'delete') {
    await updateBox(trx, box.id, { terminated_at: now, agent_token_hash: null })
    if (job.operation_id !== null) await operationCompleted(trx, job.operation_id, now)
  }
  // Something else may have been wanted meanwhile; whoever wanted it is the job's actor since.
  const next = plan({ desired: ended.desired_state, observed: ended.observed_state, job: null })
  if (next) await putJob(trx, newJob(box.id, next.op, next.step, job.actor, now))
  else await removeJob(trx, box.id)
}

export type Failure = { message: string; permanent: boolean; retryAt(attempt: number): number }

/** Whether one more failure of this claim is its last. */
export const givesUp = ({ op, attempt }: Claim, permanent: boolean): boolean => {
  const { attempts } = OPS[op]
  return attempts !== undefined && (permanent || attempt + 1 >= attempts)
}

/** Writes that the step failed: to be tried again, or given up. */
export function stepFailed(
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
    const held = await heldJob(trx, boxId, owner)
    if (!held) return
    const { box, job } = held
    if (job.op !== op || job.step !== step) return
    const { gaveUp } = OPS[op]
    if (gaveUp && givesUp(claim, failure.permanent)) {
      await enter(trx, box, gaveUp, failure.message, job.actor, now)
      return void (await removeJob(trx, boxId))
    }
    await updateJob(trx, boxId, {
      step: stageOf(op, step).retryFrom ?? step,
      attempt: attempt + 1,
      last_error: failure.message,
      next_retry_at: failure.retryAt(attempt + 1),
      lease_owner: null,
      lease_until: null,
    })
  })
}

async function heldJob(trx: Trx, boxId: string, owner: string) {
  const box = await lockBox(trx, boxId)
  const job = await jobOf(trx, boxId)
  return box && job?.lease_owner === owner ? { box, job } : null
}
