// Operations: the progress of long-running deletes (spec §2.5, §4.7).
import type { Operation } from '../../../shared/api/operations.ts'
import { type Clock, toTimestamp, toTimestampOrNull } from '../../../shared/clock.ts'
import { ApiError } from '../../../shared/errors.ts'
import { isId, newId } from '../../../shared/ids.ts'
import type { Db } from '../../db/open.ts'
import type { OperationRow } from '../../db/schema.ts'
import type { Trx } from '../../db/transaction.ts'
import type { Actor } from '../../http/actor.ts'
import { canSee, type Resource } from '../../http/visibility.ts'
import {
  deleteFinishedBefore,
  findOperationById,
  insertOperation,
  listOperationsById,
  listOperationsInProgress,
  selectLatestOperation,
  updateOperation,
} from './store.ts'

/** Spec §3: finished operations stay readable for 30 days. */
const RETENTION_MS = 30 * 24 * 60 * 60 * 1000

export const presentOperation = (row: OperationRow): Operation => ({
  id: row.id,
  kind: row.kind,
  targetId: row.target_id,
  status: row.status,
  requestedAt: toTimestamp(row.requested_at),
  completedAt: toTimestampOrNull(row.completed_at),
  error: row.error,
})

export async function createOperation(
  trx: Trx,
  {
    workspaceId,
    kind,
    targetId,
    now,
  }: {
    workspaceId: string
    kind: OperationRow['kind']
    targetId: string
    now: number
  },
): Promise<OperationRow> {
  const row: OperationRow = {
    id: newId('operation'),
    workspace_id: workspaceId,
    kind,
    target_id: targetId,
    status: 'pending',
    requested_at: now,
    completed_at: null,
    error: null,
  }
  await insertOperation(trx, row)
  return row
}

/** The feed, which lists operations, checks who sees them (feed/). */
export { listOperationsById, listOperationsInProgress }

/** The newest operation of this kind on the target. */
export const findLatestOperation = selectLatestOperation

export const startOperation = (trx: Trx, id: string) => updateOperation(trx, id, { status: 'processing' })
export const completeOperation = (trx: Trx, id: string, now: number) =>
  updateOperation(trx, id, { status: 'completed', completed_at: now })
export const failOperation = (trx: Trx, id: string, error: string, now: number) =>
  updateOperation(trx, id, { status: 'failed', completed_at: now, error })

export type OperationService = {
  /** Throws not_found for an id that is unknown, malformed or expired, and when the actor may not see the operation. */
  get(actor: Actor, id: string): Promise<Operation>
  /** Deletes operations that finished more than 30 days ago. Returns the number of deleted operations. */
  prune(): Promise<number>
}

export type OperationServiceOptions = {
  db: Db
  clock: Clock
  /** The fields of the target of an operation that decide who may see the operation. */
  findTarget: Record<
    OperationRow['kind'],
    (db: Db, targetId: string) => Promise<Pick<Resource, 'boxId' | 'ownerUserId'>>
  >
}

export function createOperationService({ db, clock, findTarget }: OperationServiceOptions): OperationService {
  async function get(actor: Actor, id: string) {
    const row = isId('operation', id) ? await findOperationById(db, id) : undefined
    if (!row || isExpired(row)) throw new ApiError('not_found')
    const target = await findTarget[row.kind](db, row.target_id)
    if (!canSee(actor, { workspaceId: row.workspace_id, ...target })) throw new ApiError('not_found')
    return presentOperation(row)
  }

  const isExpired = (row: OperationRow) =>
    row.completed_at !== null && row.completed_at < clock.now() - RETENTION_MS

  return { get, prune: () => deleteFinishedBefore(db, clock.now() - RETENTION_MS) }
}
