// The snapshots that boxes are created from, and the final snapshots that deleted boxes wait for.
import type { CreateBoxRequest } from '../../../shared/api/boxes.ts'
import { SNAPSHOT_NAME_PATTERN } from '../../../shared/api/snapshots.ts'
import { ApiError } from '../../../shared/errors.ts'
import { isId } from '../../../shared/ids.ts'
import type { Region } from '../../../shared/tiers.ts'
import type { BoxRow, SnapshotRow } from '../../db/schema.ts'
import type { Trx } from '../../db/transaction.ts'
import type { Actor } from '../../http/actor.ts'
import { canSee } from '../../http/visibility.ts'
import type { ArchiveKey } from '../../providers/provider.ts'
import { listBoxIdsBySource, updateBox } from '../store/boxes.ts'
import {
  findSnapshot,
  hasRunningCapture,
  isFinalSnapshotCreating,
  lockSnapshot,
  lockTemplate,
} from '../store/snapshots.ts'
import { enqueueDeletion } from './enqueue.ts'
import { findSizeProblem } from './file-rules.ts'

/** A snapshot is visible to the actors that may see its box. */
export const canSeeSnapshot = (actor: Actor, row: SnapshotRow): boolean =>
  canSee(actor, { workspaceId: row.workspace_id, boxId: row.box_id, ownerUserId: row.owner_user_id })

/**
 * Throws not_found for a snapshot that is unknown or not visible to the actor. A deleted snapshot is found as long as its
 * operation is readable. Locks the row.
 */
export async function requireSnapshot(trx: Trx, actor: Actor, id: string): Promise<SnapshotRow> {
  const row = isId('snapshot', id) ? await lockSnapshot(trx, id) : undefined
  if (row && canSeeSnapshot(actor, row)) return row
  throw new ApiError('not_found', 'No such snapshot. Check the id, and that this API key may access it.')
}

/** Throws snapshot_unavailable. A box from a snapshot that is still being taken waits for the files. */
export function assertUsable(row: SnapshotRow): void {
  if (row.status === 'failed')
    throw new ApiError(
      'snapshot_unavailable',
      `Snapshot ${row.name} has failed: ${row.error} Use another snapshot.`,
    )
  if (row.status === 'deleting')
    throw new ApiError('snapshot_unavailable', `Snapshot ${row.name} has been deleted. Use another snapshot.`)
  if (row.transient === 1)
    throw new ApiError(
      'snapshot_unavailable',
      `Snapshot ${row.name} is the copy of a fork and is deleted when the fork has finished. Use another snapshot, or fork with keepSnapshot.`,
    )
}

/** Throws snapshot_in_progress. */
export function assertTaken({ status, name }: SnapshotRow): void {
  if (status === 'creating')
    throw new ApiError(
      'snapshot_in_progress',
      `Snapshot ${name} is still being taken. Try again when its status is available.`,
    )
}

/** The snapshot of a create request; null: the box starts empty. Locks its row. A template must have been taken (spec §7). */
export async function findCreateSource(
  trx: Trx,
  actor: Actor,
  { fromSnapshotId, fromTemplate }: Pick<CreateBoxRequest, 'fromSnapshotId' | 'fromTemplate'>,
): Promise<SnapshotRow | null> {
  if (fromSnapshotId !== undefined) return requireSnapshot(trx, actor, fromSnapshotId)
  if (fromTemplate === undefined) return null
  const isName = SNAPSHOT_NAME_PATTERN.test(fromTemplate)
  const row = isName ? await lockTemplate(trx, actor.workspaceId, fromTemplate) : undefined
  if (row && canSeeSnapshot(actor, row)) {
    assertTaken(row)
    return row
  }
  throw new ApiError(
    'not_found',
    'No such template. GET /api/v1/snapshots lists templates with their templateName.',
  )
}

/** Where the files of a new box come from. `problem`: why the box can never get them. */
export type BoxSource =
  | { archive: ArchiveKey; region: Region; provider: string }
  | { problem: string }
  | 'creating'

/** null: the box starts empty. */
export async function findBoxSource(trx: Trx, box: BoxRow): Promise<BoxSource | null> {
  if (box.source_snapshot_id === null) return null
  const snapshot = await findSnapshot(trx, box.source_snapshot_id)
  if (!snapshot) return { problem: 'The snapshot of the box does not exist. Delete the box.' }
  if (snapshot.error !== null)
    return { problem: `The files of ${snapshot.source_hostname} could not be copied: ${snapshot.error}` }
  // A snapshot that is being deleted keeps its files until the box has them.
  if (snapshot.content_bytes === null) return 'creating'
  const problem = findSizeProblem(box.tier, snapshot.content_bytes)
  if (problem !== null) return { problem }
  const { region, provider, workspace_id: workspaceId, id: archiveId } = snapshot
  return { region, provider, archive: { workspaceId, archiveId } }
}

/** Called when a box has its files, or will never have them: deletes the copy that a fork has made for it. */
export async function releaseSource(trx: Trx, box: BoxRow, now: number): Promise<void> {
  const { source_snapshot_id: id } = box
  if (id === null) return
  await updateBox(trx, box.id, { source_snapshot_id: null })
  const snapshot = await lockSnapshot(trx, id)
  if (snapshot?.transient !== 1 || snapshot.status === 'deleting') return
  if ((await listBoxIdsBySource(trx, id)).length > 0) return
  await enqueueDeletion(trx, snapshot, { actor: 'system', now })
}

/** Steps that remove or rename the files of a machine, while the box continues to exist. */
const REMOVING_STEPS: readonly string[] = ['discard', 'relocate', 'clean_up']

/** Whether the step must wait: a deleted box for its final snapshot, and the removal of files for a capture of them. */
export async function isWaitingForSnapshot(trx: Trx, boxId: string, step: string): Promise<boolean> {
  // collect, the first step of a deletion, terminates the processes.
  if (step === 'collect' || step === 'destroy') return isFinalSnapshotCreating(trx, boxId)
  return REMOVING_STEPS.includes(step) && (await hasRunningCapture(trx, boxId))
}
