// Persists each lifecycle step: claims it under a lease before it runs and records the result afterwards.

import type { Updateable } from 'kysely'
import type { ObservedState, SuspendedAs } from '../../../shared/api/boxes.ts'
import type { ErrorCode } from '../../../shared/errors.ts'
import { newBoxToken } from '../../../shared/ids.ts'
import { lockBox } from '../../db/lock-box.ts'
import type { Db } from '../../db/open.ts'
import type { BoxRow, JobRow } from '../../db/schema.ts'
import { type Trx, transaction } from '../../db/transaction.ts'
import { hashSecret } from '../../http/hash-secret.ts'
import { countFailedAttempts, type FailureKind, isFinalFailure } from '../../jobs/failures.ts'
import { type Claimant, UNTIL_CONNECTED } from '../../jobs/leases.ts'
import { completeOperation, startOperation } from '../../jobs/operations/service.ts'
import { isElsewhere } from '../../replicas/hosts.ts'
import { hasOtherOwner } from '../../replicas/owners.ts'
import { type BoxSource, findBoxSource, isWaitingForSnapshot } from '../sources/sources.ts'
import { updateBox } from '../store/boxes.ts'
import { insertDeletedMachine } from '../store/deleted-machines.ts'
import { deleteJob, findJob, updateJob, upsertJob } from '../store/jobs.ts'
import { addLeftover } from './leftovers.ts'
import {
  completeMove,
  completeRelocation,
  deleteMoveRecord,
  type MoveParams,
  parseMoveParams,
  rollBackMove,
} from './moves.ts'
import { describeSituation, plan } from './plan.ts'
import { createJobRow } from './set-desired-state.ts'
import { recordStopped, setObservedState } from './set-observed-state.ts'
import { findStage, nextStage, OP_DEFINITIONS, type Step } from './transitions.ts'
import { explainWait } from './unavailable-hosts.ts'
import { delayDeepSleep } from './update-schedules.ts'

/** A step that no other coordinator runs while this one is alive. */
export type Claim = {
  box: BoxRow
  op: JobRow['op']
  step: Step
  /** Failed attempts so far. */
  attempt: number
  /** Set for the start step: a new token for each attempt, which replaces the previous one. The database stores its hash. */
  agentToken: string | null
  /** Set for the provision step: where the files of the new box come from. null: the box starts empty. */
  source: Exclude<BoxSource, 'creating'> | null
  /** Who requested the job. */
  actor: string
  /** Only a job that moves the box uses these parameters. */
  move: MoveParams
}

/**
 * settled: nothing to do. leased: another coordinator runs the job. elsewhere: a coordinator of another host runs it. `dueAt`: when to try again, in milliseconds since the epoch.
 */
export type ClaimResult = { claim: Claim } | { dueAt: number } | 'settled' | 'leased' | 'elsewhere'

/** The box is also scheduled when the snapshot that it waits for changes. */
const WAIT_FOR_SNAPSHOT_MS = 10_000

/**
 * Plans the box's next step and claims it, unless it is not due, another coordinator holds the lease, or the files are on another host.
 * @param isConnected whether the agent of the box is connected. The job of a machine waits for its agent without a lease. The
 *   disconnect monitor schedules the box when its agent has connected.
 */
export function claimNextStep(
  db: Db,
  boxId: string,
  { owner, host, now }: Claimant,
  isConnected: (boxId: string) => boolean = () => true,
): Promise<ClaimResult> {
  return transaction(db, async (trx) => {
    let box = await lockBox(trx, boxId)
    if (!box) return 'settled'
    if (isElsewhere(box, host)) {
      await explainWait(trx, box, host)
      return 'elsewhere'
    }
    const job = (await findJob(trx, boxId)) ?? null
    if (job && (await hasOtherOwner(trx, job.lease_owner, owner))) return 'leased'
    const next = plan(describeSituation(box, job && restartStep(job, owner)))
    if (!next) {
      if (job) await deleteJob(trx, boxId)
      return 'settled'
    }
    const currentJob = job?.op === next.op ? job : null
    const isWaiting = currentJob?.next_retry_at === UNTIL_CONNECTED
    if (!isWaiting && currentJob?.next_retry_at && currentJob.next_retry_at > now) {
      await updateJob(trx, boxId, { lease_owner: null })
      return { dueAt: currentJob.next_retry_at }
    }
    const row = currentJob ?? createJobRow(boxId, next.op, next.step, job?.actor ?? 'system', now)
    const source = next.step === 'provision' ? await findBoxSource(trx, box) : null
    if (source === 'creating' || (await isWaitingForSnapshot(trx, boxId, next.step))) {
      await upsertJob(trx, row)
      await updateJob(trx, boxId, { lease_owner: null })
      return { dueAt: now + WAIT_FOR_SNAPSHOT_MS }
    }
    const { state } = findStage(next.op, next.step)
    if (box.kind === 'machine' && next.step === 'connect' && !isConnected(boxId)) {
      if (isWaiting) return 'settled'
      await upsertJob(trx, { ...row, step: next.step, next_retry_at: UNTIL_CONNECTED })
      await updateJob(trx, boxId, { lease_owner: null })
      if (state) await setObservedState(trx, box, state, eventReason(row), row.actor, now)
      return 'settled'
    }
    // The source of a fork may have been moved before its files were captured.
    if (source && 'region' in source && source.region !== box.region) {
      // A machine may wait for the box there.
      const leftovers = addLeftover(box.leftovers, { region: box.region, machine: true, archiveId: null })
      box = await updateBox(trx, boxId, { region: source.region, provider: source.provider, leftovers })
    }
    await upsertJob(trx, { ...row, step: next.step, next_retry_at: null })
    await updateJob(trx, boxId, { lease_owner: owner })
    let updatedBox = state ? await setObservedState(trx, box, state, eventReason(row), row.actor, now) : box
    // From now on the memory of a frozen box may be lost: the stop must succeed before the box is woken.
    if (state === 'suspended' && next.step === 'stop')
      updatedBox = await updateBox(trx, boxId, { suspended_as: 'stopped' })
    // From now on only the archive has all files of the box.
    if (next.step === 'discard') updatedBox = await updateBox(trx, boxId, { suspended_as: null })
    if (row.operation_id !== null) await startOperation(trx, row.operation_id)
    const agentToken = next.step === 'start' ? await replaceAgentToken(trx, boxId) : null
    const { attempt, actor } = row
    const { op, step } = next
    const move = parseMoveParams(row)
    return { claim: { box: updatedBox, op, step, attempt, agentToken, source, actor, move } }
  })
}

/**
 * The job, with the step start instead of connect when another coordinator waited for the agent: the machine may have stopped
 * meanwhile. The jobs of enrolled machines have no step start.
 */
const restartStep = (job: JobRow, owner: string): JobRow =>
  job.step === 'connect' && job.lease_owner !== owner && job.op !== 'enroll' && job.op !== 'reconnect'
    ? { ...job, step: 'start' }
    : job

async function replaceAgentToken(trx: Trx, boxId: string): Promise<string> {
  const token = newBoxToken()
  await updateBox(trx, boxId, { agent_token_hash: hashSecret(token) })
  return token
}

const eventReason = (job: Pick<JobRow, 'op' | 'reason'>): string =>
  job.reason ?? OP_DEFINITIONS[job.op].reason

export type StepResult = {
  /** The isolation of the machine, as JSON of Isolation. */
  isolation?: string | null
  /** The step to run next, instead of the following one. */
  skipTo?: Step
  /** The step has finished the job in this state. */
  finish?: ObservedState
  /** What happened to the processes of the box. */
  suspendedAs?: SuspendedAs
  /** The disk space that the files of the archived machine occupy. */
  archiveBytes?: number
  /** The provider of the region to which the box is moved. */
  provider?: string | undefined
  /** The content of the image of the machine. */
  imageDigest?: string | null | undefined
  /** The machine is in the region to which the box is moved, and not in the old one any more. */
  isRelocated?: boolean
  /** The reason of the job's further state events. */
  reason?: string
}

/**
 * Records that the step succeeded: the job moves to its next step, or finishes after the last one.
 * @returns whether the job has finished
 */
export function completeStep(
  db: Db,
  { box: { id: boxId }, op, step }: Claim,
  result: StepResult,
  { owner, now }: Claimant,
): Promise<boolean> {
  return transaction(db, async (trx) => {
    const leased = await findLeasedJob(trx, boxId, owner)
    if (!leased) return false
    const { job } = leased
    let { box } = leased
    // These results are recorded even when the desired state has changed: the machine has been created, moved, started or stopped.
    const { provider = box.provider, imageDigest } = result
    if (result.isRelocated) box = await updateBox(trx, boxId, completeRelocation(box, provider))
    if (imageDigest && box.image_digest === null)
      box = await updateBox(trx, boxId, { image_digest: imageDigest })
    if (result.isolation) await updateBox(trx, boxId, { isolation: result.isolation })
    if (result.archiveBytes !== undefined) await updateBox(trx, boxId, { archive_bytes: result.archiveBytes })
    if (result.suspendedAs) await updateBox(trx, boxId, { suspended_as: result.suspendedAs })
    if (job.op !== op || job.step !== step) return false
    const next = result.skipTo ? findStage(op, result.skipTo) : nextStage(op, step)
    const isFinished = !next || result.finish !== undefined
    const changes = changesAfter({ op, step, isFinished, provider }, box, job)
    const updatedBox = changes ? await updateBox(trx, boxId, changes) : box
    if (isFinished) {
      const finished = { ...job, reason: result.reason ?? job.reason }
      await finishJob(
        trx,
        { ...updatedBox, suspended_as: result.suspendedAs ?? box.suspended_as },
        finished,
        {
          state: result.finish ?? OP_DEFINITIONS[op].finalState,
          now,
        },
      )
      return true
    }
    await updateJob(trx, boxId, { step: next.step, reason: result.reason ?? job.reason })
    return false
  })
}

function changesAfter(
  { op, step, isFinished, provider }: Pick<Claim, 'op' | 'step'> & { isFinished: boolean; provider: string },
  box: BoxRow,
  job: JobRow,
): Updateable<BoxRow> | null {
  const { archive_id: archiveId, region } = box
  // The step relocate has already written the new region of a relocated box.
  const isMoving = box.desired_region !== null
  if (op === 'move') return isFinished && isMoving ? completeMove(box, parseMoveParams(job), provider) : null
  // The archive becomes outdated when the machine starts.
  if (step === 'unpack' && archiveId !== null)
    return { archive_id: null, leftovers: addLeftover(box.leftovers, { region, machine: false, archiveId }) }
  if (step === 'clean_up') return { leftovers: null }
  return null
}

async function finishJob(
  trx: Trx,
  box: BoxRow,
  job: JobRow,
  { state, now }: { state: ObservedState | null; now: number },
): Promise<void> {
  const { op, actor } = job
  const reason = eventReason(job)
  let updatedBox = box
  if (op === 'stop') updatedBox = await recordStopped(trx, box, reason, actor, now)
  else if (state) updatedBox = await setObservedState(trx, box, state, reason, actor, now)
  if (op === 'wake' && box.suspended_as === 'frozen')
    await updateBox(trx, box.id, { pauses_survived: box.pauses_survived + 1 })
  if (op === 'delete') {
    const removed = { archive_id: null, leftovers: null, desired_region: null, agent_token_hash: null }
    if (box.kind === 'machine') await insertDeletedMachine(trx, box, now)
    await updateBox(trx, box.id, { ...removed, terminated_at: now })
    if (job.operation_id !== null) await completeOperation(trx, job.operation_id, now)
  }
  await startNextJob(trx, updatedBox, actor, now)
}

/** The desired state may have changed during the job. The change also wrote its actor to the job. */
async function startNextJob(trx: Trx, box: BoxRow, actor: string, now: number): Promise<void> {
  const next = plan(describeSituation(box, null))
  if (next) await upsertJob(trx, createJobRow(box.id, next.op, next.step, actor, now))
  else await deleteJob(trx, box.id)
}

export type Failure = {
  message: string
  kind: FailureKind
  /** For clients; null: the failure has no code. */
  code?: ErrorCode | null
  /** When to retry, in milliseconds since the epoch. */
  retryAt: number
}

/** Whether the job fails when this attempt fails. */
export const isFinalAttempt = ({ op, step, attempt }: Claim, kind: FailureKind): boolean => {
  const { maxAttempts, failsIn = step, retriedStep } = OP_DEFINITIONS[op]
  if (step === retriedStep || maxAttempts === undefined || failsIn !== step) return false
  return isFinalFailure(kind, attempt, maxAttempts)
}

/** Records that the step failed: schedules a retry, or ends the job in its failure state after the last attempt. */
export function failStep(db: Db, claim: Claim, failure: Failure, { owner, now }: Claimant): Promise<void> {
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
    if (isFinalAttempt(claim, failure.kind)) {
      const fail = op === 'move' ? failMove : op === 'sleep' ? failSleep : failCreate
      return startNextJob(trx, await fail(trx, box, job, failure, now), job.actor, now)
    }
    await updateJob(trx, boxId, {
      step: findStage(op, step).retryFrom ?? step,
      attempt: countFailedAttempts(failure.kind, attempt),
      last_error: failure.message,
      next_retry_at: failure.retryAt,
      lease_owner: null,
    })
  })
}

const withoutFinalPeriod = (text: string): string => text.replace(/\.$/, '')

const failCreate = (
  trx: Trx,
  box: BoxRow,
  job: JobRow,
  { message, code = null }: Failure,
  now: number,
): Promise<BoxRow> => setObservedState(trx, box, 'provision_failed', message, job.actor, now, code)

/** The box stays suspended. The archive is incomplete. */
async function failSleep(
  trx: Trx,
  box: BoxRow,
  job: JobRow,
  { message }: Failure,
  now: number,
): Promise<BoxRow> {
  const { region, archive_id: archiveId } = box
  const reason = `packing the box into an archive failed: ${withoutFinalPeriod(message)}; the box stays suspended`
  // A frozen box was stopped before.
  await recordStopped(trx, box, reason, job.actor, now)
  await delayDeepSleep(trx, box.id, now)
  const leftovers = addLeftover(box.leftovers, { region, machine: false, archiveId })
  return updateBox(trx, box.id, { archive_id: null, leftovers })
}

async function failMove(
  trx: Trx,
  box: BoxRow,
  job: JobRow,
  { message }: Failure,
  now: number,
): Promise<BoxRow> {
  const move = parseMoveParams(job)
  if (box.desired_region === null) {
    const reason = `the box was moved to ${box.region}, and could not be started: ${withoutFinalPeriod(message)}`
    return setObservedState(trx, box, 'suspended', reason, job.actor, now)
  }
  await deleteMoveRecord(trx, job)
  const rolledBack = await updateBox(trx, box.id, rollBackMove(box, move))
  const reason = `the move to ${box.desired_region} failed: ${withoutFinalPeriod(message)}; the box stays in ${box.region}`
  const state = move.isPacked ? 'deep_sleep' : 'suspended'
  return setObservedState(trx, rolledBack, state, reason, job.actor, now)
}

async function findLeasedJob(trx: Trx, boxId: string, owner: string) {
  const box = await lockBox(trx, boxId)
  const job = await findJob(trx, boxId)
  return box && job?.lease_owner === owner ? { box, job } : null
}
