// The snapshots that the coordinator itself takes and deletes: automatic, final and expired ones. Runs the jobs of all snapshots.

import { recordSnapshotChange } from '../../audit/record-change.ts'
import { withTimeout } from '../../base/timeout.ts'
import type { BoxRow } from '../../db/schema.ts'
import { type Trx, transaction } from '../../db/transaction.ts'
import type { ScheduleHandler } from '../../http/module.ts'
import { deleteSchedule, lockSchedule } from '../../jobs/schedules.ts'
import type { BoxSecrets } from '../box-hooks.ts'
import { recordSnapshotJob } from '../job-changes.ts'
import { enqueueDeletion, enqueueSnapshot, type NewSnapshot } from '../sources/enqueue.ts'
import { findFilesProblem } from '../sources/file-rules.ts'
import {
  deleteSnapshotsDeletedBefore,
  hasSnapshot,
  listCreatingSnapshotsOfBox,
  listSnapshotIdsToRemove,
  listSnapshotsOfBox,
  lockSnapshot,
} from '../store/snapshots.ts'
import { createSnapshotReconciler, type SnapshotReconcilerOptions } from './reconciler.ts'
import { computeAutoExpiry, createSnapshotName } from './rules.ts'

export type SnapshotsOptions = SnapshotReconcilerOptions & {
  /** Take a final snapshot of each box that is deleted. */
  finalSnapshots: boolean
  boxSecrets: Pick<BoxSecrets, 'listCarried'>
}

export type Snapshots = {
  /** Runs the job of the snapshot. Call it after the commit that wrote the job. */
  schedule(snapshotId: string): void
  /**
   * Takes an automatic snapshot of a box that the caller has locked. When the snapshot is available, the oldest automatic
   * snapshots of the box beyond autoSnapshotKeep are deleted. Returns the id; null: the box has no files, or its
   * previous automatic snapshot is still being taken.
   */
  enqueueAutoSnapshot(trx: Trx, box: BoxRow, now: number): Promise<string | null>
  /** The handler of the schedule: deletes a snapshot whose expiresAt has passed. No effect on any other snapshot. */
  expireSnapshot: ScheduleHandler
  /** Call it in the transaction that requests the deletion of a box, before the desired state is written. */
  onBoxDelete(trx: Trx, box: BoxRow, actor: string, now: number): Promise<void>
  /** Call it when the state of a box has changed, or may have changed: snapshots may have waited for it. */
  onBoxChange(): void
  /**
   * Requests the deletion of every snapshot of the workspace. Returns whether all are deleted.
   * @param signal aborts between two transactions
   */
  removeAll(workspaceId: string, signal: AbortSignal): Promise<boolean>
  /** Forgets the snapshots that were deleted more than 30 days ago. Returns their number. */
  prune(): Promise<number>
  /** Continues unfinished jobs. */
  start(): Promise<void>
  /** Interrupts the running jobs. Resolves when they have stopped, at the latest after 10 s. */
  close(): Promise<void>
}

const CLOSE_TIMEOUT_MS = 10_000
const REMOVAL_BATCH = 100
/** Deleted snapshots keep their rows as long as the operations of the deletions are readable (spec §3). */
const RETENTION_MS = 30 * 24 * 60 * 60 * 1000

export function createSnapshots(options: SnapshotsOptions): Snapshots {
  const { db, clock, log, finalSnapshots, boxSecrets } = options
  const reconciler = createSnapshotReconciler(options)
  const { schedule } = reconciler

  function enqueueAutoSnapshot(trx: Trx, box: BoxRow, now: number): Promise<string | null> {
    return transaction(trx, async (trx, onCommit) => {
      if (findFilesProblem(box) !== null) return null
      const [latest] = await listSnapshotsOfBox(trx, box.id, 'auto')
      if (latest?.status === 'creating') return null
      const name = createSnapshotName(box.hostname, 'auto', now)
      const expiresAt = computeAutoExpiry(box, now)
      const input: NewSnapshot = { name, kind: 'auto', expiresAt, actor: 'system', now }
      const snapshot = await enqueueSnapshot(trx, box, input, boxSecrets)
      recordSnapshotChange(trx, 'snapshot.create', snapshot, { actor: 'system', now }, { kind: 'auto' })
      onCommit(() => schedule(snapshot.id))
      return snapshot.id
    })
  }

  function expireSnapshot(id: string): Promise<number | undefined> {
    return transaction(db, async (trx, onCommit) => {
      const now = clock.now()
      const key = { kind: 'expire_snapshot', target_id: id }
      const row = await lockSnapshot(trx, id)
      const scheduled = await lockSchedule(trx, key)
      if (!scheduled || scheduled.due_at > now) return scheduled?.due_at
      await deleteSchedule(trx, key)
      if (!row || row.status === 'deleting' || row.expires_at === null || row.expires_at > now)
        return undefined
      await enqueueDeletion(trx, row, { actor: 'system', now })
      if (row.transient === 0)
        recordSnapshotChange(trx, 'snapshot.delete', row, { actor: 'system', now }, { reason: 'expired' })
      onCommit(() => schedule(id))
      return undefined
    })
  }

  function onBoxDelete(trx: Trx, box: BoxRow, actor: string, now: number): Promise<void> {
    return transaction(trx, async (trx, onCommit) => {
      // Aborts the captures of the box, which then fail because the box has been deleted.
      const captures = await listCreatingSnapshotsOfBox(trx, box.id)
      for (const { id } of captures) {
        onCommit(() => schedule(id))
        recordSnapshotJob(trx, id)
      }
      if (!finalSnapshots || findFilesProblem(box) !== null) return
      const name = createSnapshotName(box.hostname, 'final', now)
      const snapshot = await enqueueSnapshot(trx, box, { name, kind: 'final', actor, now }, boxSecrets)
      recordSnapshotChange(trx, 'snapshot.create', snapshot, { actor: 'system', now }, { kind: 'final' })
      onCommit(() => schedule(snapshot.id))
    })
  }

  async function removeAll(workspaceId: string, signal: AbortSignal): Promise<boolean> {
    while (!signal.aborted) {
      const ids = await listSnapshotIdsToRemove(db, workspaceId, REMOVAL_BATCH)
      for (const id of ids)
        await transaction(db, async (trx, onCommit) => {
          const row = await lockSnapshot(trx, id)
          if (!row || row.status === 'deleting') return
          const [actor, now, reason] = ['system', clock.now(), 'the workspace has been closed'] as const
          await enqueueDeletion(trx, row, { actor, now })
          if (row.transient === 0)
            recordSnapshotChange(trx, 'snapshot.delete', row, { actor, now }, { reason })
          onCommit(() => schedule(id))
        })
      if (ids.length === 0) return !(await hasSnapshot(db, workspaceId))
    }
    return false
  }

  let closed: Promise<void> | undefined
  function close(): Promise<void> {
    closed ??= withTimeout(
      reconciler.close(),
      CLOSE_TIMEOUT_MS,
      `jobs of snapshots run for more than ${CLOSE_TIMEOUT_MS} ms`,
    ).catch((err: unknown) => log.error({ err }, 'stopping without waiting for the jobs of snapshots'))
    return closed
  }

  return {
    schedule,
    enqueueAutoSnapshot,
    expireSnapshot,
    onBoxDelete,
    onBoxChange: reconciler.runDue,
    removeAll,
    prune: () => deleteSnapshotsDeletedBefore(db, clock.now() - RETENTION_MS),
    start: reconciler.start,
    close,
  }
}
