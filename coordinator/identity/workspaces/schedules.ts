// The schedules of a workspace. Their handlers are in the room retention/.
import type { Trx } from '../../db/transaction.ts'
import { setSchedule } from '../../jobs/schedules.ts'

/** Schedules the purge of a closing workspace; null: the workspace is open again. */
export const schedulePurge = (trx: Trx, workspaceId: string, purgeAfter: number | null): Promise<unknown> =>
  setSchedule(trx, { kind: 'purge_workspace', target_id: workspaceId }, purgeAfter)

/** Schedules the erasure for zero data retention. Restarts an erasure in progress: data may have been stored since it began. */
export const scheduleErasure = (trx: Trx, workspaceId: string, now: number): Promise<unknown> =>
  setSchedule(trx, { kind: 'erase', target_id: workspaceId }, now)
