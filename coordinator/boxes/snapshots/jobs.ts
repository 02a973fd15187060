// Persists the jobs of snapshots: claims a job under a lease before it runs and records its result afterwards.
import { recordSnapshotChange } from '../../audit/record-change.ts'
import { lockBox } from '../../db/lock-box.ts'
import type { Db } from '../../db/open.ts'
import type { BoxRow, SnapshotJobRow, SnapshotRow } from '../../db/schema.ts'
import { type Trx, transaction } from '../../db/transaction.ts'
import { countFailedAttempts, type FailureKind, isFinalFailure } from '../../jobs/failures.ts'
import type { Claimant } from '../../jobs/leases.ts'
import { completeOperation, startOperation } from '../../jobs/operations/service.ts'
import type { ArchiveInfo } from '../../providers/provider.ts'
import { isElsewhere } from '../../replicas/hosts.ts'
import { hasOtherOwner } from '../../replicas/owners.ts'
import { createJobRow, enqueueDeletion, scheduleExpiry } from '../sources/enqueue.ts'
import { findFilesProblem } from '../sources/file-rules.ts'
import { listBoxIdsBySource } from '../store/boxes.ts'
import { findJob, isStepRunning } from '../store/jobs.ts'
import {
  deleteSnapshot,
  deleteSnapshotJob,
  findSnapshot,
  findSnapshotJob,
  listSnapshotsOfBox,
  lockSnapshot,
  updateSnapshot,
  updateSnapshotJob,
  upsertSnapshotJob,
} from '../store/snapshots.ts'

/** `box`: null when the row of the box has been deleted. */
export type SnapshotClaim = { snapshot: SnapshotRow; job: SnapshotJobRow; box: BoxRow | null }

/**
 * `dueAt`: when to try again, in milliseconds since the epoch. changed: the job has failed without a step. leased: another
 * coordinator runs the job. elsewhere: a coordinator of another host runs it.
 */
export type SnapshotClaimResult =
  | { claim: SnapshotClaim }
  | { dueAt: number }
  | 'settled'
  | 'changed'
  | 'leased'
  | 'elsewhere'

export const MAX_ATTEMPTS = 5
/** A job that waits for a box is also run when the box changes. */
const WAIT_FOR_BOX_MS = 10_000

export function claimSnapshotJob(
  db: Db,
  id: string,
  { owner, host, now }: Claimant,
): Promise<SnapshotClaimResult> {
  return transaction(db, async (trx) => {
    const found = await findSnapshot(trx, id)
    // Serialises the claim with the claims of steps that remove the files of the box.
    const box = (found && (await lockBox(trx, found.box_id))) ?? null
    const snapshot = await lockSnapshot(trx, id)
    const job = await findSnapshotJob(trx, id)
    if (!snapshot || !job) return 'settled'
    if (isElsewhere(snapshot, host)) return 'elsewhere'
    if (await hasOtherOwner(trx, job.lease_owner, owner)) return 'leased'
    const wait = async (dueAt: number) => {
      await updateSnapshotJob(trx, id, { lease_owner: null })
      return { dueAt }
    }
    if (job.next_retry_at !== null && job.next_retry_at > now) return wait(job.next_retry_at)
    if (job.op === 'create') {
      const problem = findCaptureProblem(snapshot, box)
      if (problem !== null) {
        await failSnapshot(trx, snapshot, job, problem, now)
        return 'changed'
      }
      // The move decides which machine has the files. A machine that is being discarded has only some of them.
      // The deletion of a box ends its move, after the step that runs now.
      const boxJob = await findJob(trx, snapshot.box_id)
      const isMoving =
        box?.desired_region &&
        (box.desired_state !== 'terminated' || (await isStepRunning(trx, snapshot.box_id)))
      if (isMoving || boxJob?.step === 'discard') return wait(now + WAIT_FOR_BOX_MS)
    } else if ((await listBoxIdsBySource(trx, id)).length > 0) return wait(now + WAIT_FOR_BOX_MS)
    await updateSnapshotJob(trx, id, { next_retry_at: null, lease_owner: owner })
    if (job.op === 'delete' && job.operation_id !== null) await startOperation(trx, job.operation_id)
    return { claim: { snapshot, job, box } }
  })
}

/** A deleted box waits for its final snapshot, so its files exist. */
function findCaptureProblem({ kind }: SnapshotRow, box: BoxRow | null): string | null {
  if (box === null) return 'The box does not exist.'
  if (kind === 'final') return box.observed_state === 'terminated' ? 'The box has been deleted.' : null
  return findFilesProblem(box)
}

/** Writes the result of the job that the claim has leased, unless the job was replaced or the lease is lost. */
const recordResult = (
  db: Db,
  { snapshot, job }: SnapshotClaim,
  owner: string,
  write: (trx: Trx, row: SnapshotRow, job: SnapshotJobRow) => Promise<void>,
): Promise<void> =>
  transaction(db, async (trx) => {
    const row = await lockSnapshot(trx, snapshot.id)
    const current = await findSnapshotJob(trx, snapshot.id)
    if (row && current?.lease_owner === owner && current.op === job.op) await write(trx, row, current)
  })

/** Records the region from which the files are captured, and its provider, when the box has been moved. */
export function setSnapshotRegion(db: Db, { snapshot, box }: SnapshotClaim, now: number): Promise<unknown> {
  return transaction(db, (trx) =>
    updateSnapshot(trx, snapshot.id, {
      region: box?.region ?? snapshot.region,
      provider: box?.provider ?? snapshot.provider,
      updated_at: now,
    }),
  )
}

/** Records that the provider has copied the files: boxes can be created from the snapshot before it is available. */
export function recordCopy(
  db: Db,
  claim: SnapshotClaim,
  { contentBytes, pausedMs }: ArchiveInfo,
  { owner, now }: Claimant,
): Promise<void> {
  return recordResult(db, claim, owner, async (trx, row) => {
    await updateSnapshot(trx, row.id, {
      content_bytes: contentBytes,
      paused_ms: pausedMs,
      updated_at: now,
    })
  })
}

/** Records that the files have been captured. Deletes the automatic snapshots that the box does not keep. */
export function completeCapture(
  db: Db,
  claim: SnapshotClaim,
  { contentBytes, storedBytes, pausedMs }: ArchiveInfo,
  { owner, now }: Claimant,
): Promise<void> {
  return recordResult(db, claim, owner, async (trx, row, job) => {
    const isDeleted = row.status === 'deleting'
    await updateSnapshot(trx, row.id, {
      status: isDeleted ? 'deleting' : 'available',
      content_bytes: contentBytes,
      stored_bytes: storedBytes,
      paused_ms: pausedMs,
      updated_at: now,
    })
    if (isDeleted) {
      const deletion = createJobRow(row.id, 'delete', job.actor, now)
      await upsertSnapshotJob(trx, { ...deletion, operation_id: job.operation_id })
    } else await deleteSnapshotJob(trx, row.id)
    if (row.kind === 'auto' && claim.box) await pruneAutoSnapshots(trx, claim.box, now)
  })
}

/** Deletes the oldest automatic snapshots of the box beyond its number. */
async function pruneAutoSnapshots(trx: Trx, { id, auto_snapshot_keep: keep }: BoxRow, now: number) {
  const snapshots = await listSnapshotsOfBox(trx, id, 'auto')
  const available = snapshots.filter(({ status }) => status === 'available')
  for (const { id: snapshotId } of available.slice(keep)) {
    const row = await lockSnapshot(trx, snapshotId)
    if (row?.status !== 'available') continue
    const [actor, reason] = ['system', 'replaced by newer automatic snapshots'] as const
    await enqueueDeletion(trx, row, { actor, now })
    recordSnapshotChange(trx, 'snapshot.delete', row, { actor, now }, { reason })
  }
}

/** Records that the files have been removed: deletes the snapshot, except one that has failed. */
export function completeRemoval(db: Db, claim: SnapshotClaim, { owner, now }: Claimant): Promise<void> {
  return recordResult(db, claim, owner, async (trx, row, job) => {
    await deleteSnapshotJob(trx, row.id)
    if (row.status !== 'deleting') return
    await scheduleExpiry(trx, row.id, null)
    if (job.operation_id === null) return void (await deleteSnapshot(trx, row.id))
    await completeOperation(trx, job.operation_id, now)
    await updateSnapshot(trx, row.id, { template_name: null, deleted_at: now, updated_at: now })
  })
}

export type SnapshotFailure = {
  message: string
  kind: FailureKind
  /** When to retry, in milliseconds since the epoch. */
  retryAt: number
}

export const isFinalAttempt = ({ job }: SnapshotClaim, kind: FailureKind): boolean =>
  job.op === 'create' && isFinalFailure(kind, job.attempt, MAX_ATTEMPTS)

/** Schedules a retry; after the last attempt of a create, the snapshot has failed. */
export function failSnapshotJob(
  db: Db,
  claim: SnapshotClaim,
  { message, kind, retryAt }: SnapshotFailure,
  { owner, now }: Claimant,
): Promise<void> {
  return recordResult(db, claim, owner, async (trx, row, job) => {
    if (isFinalAttempt(claim, kind)) return failSnapshot(trx, row, job, message, now)
    await updateSnapshotJob(trx, row.id, {
      attempt: countFailedAttempts(kind, job.attempt),
      last_error: message,
      next_retry_at: retryAt,
      lease_owner: null,
    })
  })
}

/** The job then removes what has been captured, and the snapshot too if it has been deleted. */
async function failSnapshot(
  trx: Trx,
  row: SnapshotRow,
  job: SnapshotJobRow,
  error: string,
  now: number,
): Promise<void> {
  const removal = createJobRow(row.id, 'delete', job.actor, now)
  await upsertSnapshotJob(trx, { ...removal, operation_id: job.operation_id })
  const status = row.status === 'deleting' ? 'deleting' : 'failed'
  await updateSnapshot(trx, row.id, {
    status,
    error,
    content_bytes: null,
    paused_ms: null,
    updated_at: now,
  })
}
