// Deletes are idempotent (spec §4.1.5): a repeated DELETE is answered as the first one, and an unknown id is not found. For
// resources whose rows are removed, their ids are kept for a while; rows that stay after their deletion need nothing.
import { ApiError } from '../../shared/errors.ts'
import type { Db } from '../db/open.ts'
import type { Trx } from '../db/transaction.ts'
import type { Actor } from './actor.ts'
import { findDeletion, upsertDeletion } from './deletion-store.ts'

/** How long a DELETE can be repeated. Rows that stay after their deletion are kept as long. */
export const DELETION_RETENTION_MS = 30 * 24 * 60 * 60_000

type Workspace = Pick<Actor, 'workspaceId'>

/**
 * In the transaction that deletes the row.
 * @param resourceId the id of the path, after that of its parent or owner, if there is one
 */
export async function recordDeletion(
  trx: Trx,
  { workspaceId }: Workspace,
  resourceId: string,
  now: number,
): Promise<void> {
  await upsertDeletion(trx, { workspace_id: workspaceId, resource_id: resourceId, deleted_at: now })
}

/** Whether a DELETE in this workspace has removed the resource. The caller has checked that the actor sees its parent. */
export const wasDeleted = async (
  db: Db | Trx,
  { workspaceId }: Workspace,
  resourceId: string,
): Promise<boolean> => (await findDeletion(db, workspaceId, resourceId)) !== undefined

/**
 * Runs a deletion that throws not_found for an unknown id. A repeated one has no effect, also one that runs at the same time.
 * Not for a resource with a parent, which may not be visible: see wasDeleted().
 */
export async function repeatDeletion(
  db: Db,
  workspace: Workspace,
  resourceId: string,
  run: () => Promise<void>,
): Promise<void> {
  try {
    await run()
  } catch (error) {
    const isNotFound = error instanceof ApiError && error.code === 'not_found'
    if (!isNotFound || !(await wasDeleted(db, workspace, resourceId))) throw error
  }
}
