// Deletes the events that are older than the policy auditRetentionDays of their workspace (spec §2.9).
import type { Clock } from '../../shared/clock.ts'
import { deleteInBatches } from '../db/delete-in-batches.ts'
import type { Db } from '../db/open.ts'
import type { Trx } from '../db/transaction.ts'
import { recordAuditEvent } from './service.ts'
import {
  deleteEventsThrough,
  findNewestEventBefore,
  listOldestEvents,
  listWorkspaceIds,
  lockHead,
  updateAnchor,
} from './store.ts'

const DAY_MS = 24 * 60 * 60 * 1000
const WORKSPACES_PER_QUERY = 100
/** Events per transaction. */
const BATCH_SIZE = 1000

export type AuditPruneOptions = {
  db: Db
  clock: Clock
  /** The policy auditRetentionDays of the workspace. */
  loadRetentionDays(workspaceId: string): Promise<number>
}

/**
 * Returns the number of deleted events.
 * @param signal aborts between two transactions
 */
export async function pruneAuditLog(
  { db, clock, loadRetentionDays }: AuditPruneOptions,
  signal: AbortSignal,
  batchSize = BATCH_SIZE,
): Promise<number> {
  let deleted = 0
  for (let after = ''; ; ) {
    const ids = await listWorkspaceIds(db, after, WORKSPACES_PER_QUERY)
    for (const workspaceId of ids) {
      if (signal.aborted) return deleted
      const now = clock.now()
      const retentionDays = await loadRetentionDays(workspaceId)
      // Only whole days are deleted: otherwise each run would delete some events, and record that it did.
      const before = (Math.floor(now / DAY_MS) - retentionDays) * DAY_MS
      const through = await findNewestEventBefore(db, workspaceId, before)
      if (through === undefined) continue
      const deleteBatch = (trx: Trx) => pruneBatch(trx, { workspaceId, through, batchSize, now })
      deleted += await deleteInBatches(db, deleteBatch, signal)
    }
    if (ids.length < WORKSPACES_PER_QUERY) return deleted
    after = ids.at(-1) ?? ''
  }
}

/** Deletes the oldest events. The last of them becomes the anchor of the hash chain. */
async function pruneBatch(
  trx: Trx,
  {
    workspaceId,
    through,
    batchSize,
    now,
  }: { workspaceId: string; through: number; batchSize: number; now: number },
): Promise<number> {
  await lockHead(trx, workspaceId)
  const events = await listOldestEvents(trx, workspaceId, through, batchSize)
  const last = events.at(-1)
  if (last === undefined) return 0
  await deleteEventsThrough(trx, workspaceId, last.no)
  await updateAnchor(trx, workspaceId, last)
  recordAuditEvent(trx, {
    kind: 'audit.prune',
    actor: { system: true, workspaceId },
    boxId: null,
    detail: { through: last.no, deleted: events.length },
    at: now,
  })
  return events.length
}
