// Deletes everything of a closing workspace when the time in which it can be reopened has ended. Every step is idempotent:
// a coordinator that is killed repeats the purge from the start, and finds nothing left of the steps that are complete.
import type { Logger } from 'pino'
import type { Clock } from '../../shared/clock.ts'
import { deleteInBatches } from '../db/delete-in-batches.ts'
import { lockWorkspace } from '../db/lock-workspace.ts'
import type { Db } from '../db/open.ts'
import { transaction } from '../db/transaction.ts'
import { recordAccessChange } from '../http/access-changes.ts'
import type { ScheduleHandler, WorkspaceTable } from '../http/module.ts'
import { deleteSignInCodes } from '../identity/sessions/prune.ts'
import { deleteWorkspace, removeMembers } from '../identity/workspaces/purge.ts'
import { schedulePurge } from '../identity/workspaces/schedules.ts'
import { deleteSchedulesOf, moveSchedule } from '../jobs/schedules.ts'
import { deleteSomeRows } from './purge-store.ts'

export type PurgeOptions = {
  db: Db
  clock: Clock
  log: Pick<Logger, 'info'>
  /** Returns the tables of all modules, in the order of the modules. `deleteBoxRows` deletes the boxes. */
  listWorkspaceTables(): readonly WorkspaceTable[]
  /** Requests the deletion of all boxes. Returns whether all are terminated. */
  removeBoxes(workspaceId: string, signal: AbortSignal): Promise<boolean>
  /** Requests the deletion of all snapshots. Returns whether all are deleted. */
  removeSnapshots(workspaceId: string, signal: AbortSignal): Promise<boolean>
  /** Removes what the providers store for the workspace, which has no boxes and no snapshots. */
  removeArchives(workspaceId: string): Promise<void>
  /** Deletes the rows of the terminated boxes, with their history. */
  deleteBoxRows(workspaceId: string, signal: AbortSignal): Promise<void>
}

const BATCH_SIZE = 1000
/** Machines are polled for their end in an interval that grows with the time that they take. */
const POLL_MS = { min: 250, max: 60_000 } as const

/** The handler of the schedule: purges the workspace if its time has come. The signal aborts between two transactions. */
export function createPurge(options: PurgeOptions): ScheduleHandler {
  const { db, clock, log, removeBoxes, removeSnapshots, removeArchives, deleteBoxRows } = options

  /** A row refers only to rows of earlier modules, so the tables of later modules are first. */
  const getTables = ({ isCredential }: { isCredential: boolean }): WorkspaceTable[] =>
    options
      .listWorkspaceTables()
      .filter((table) => (table.isCredential ?? false) === isCredential)
      .reverse()

  /** The members cannot sign in any more. null: there is nothing to purge. */
  function begin(workspaceId: string): Promise<{ dueAt: number } | { startedAt: number } | null> {
    return transaction(db, async (trx) => {
      const workspace = await lockWorkspace(trx, workspaceId)
      const now = clock.now()
      if (!workspace || workspace.purge_after === null) {
        await schedulePurge(trx, workspaceId, null)
        return null
      }
      const { purge_after: purgeAfter } = workspace
      if (purgeAfter > now) return { dueAt: purgeAfter }
      return { startedAt: await removeMembers(trx, workspaceId, now) }
    })
  }

  async function deleteCredentials(workspaceId: string, signal: AbortSignal): Promise<void> {
    // Some belong to keys, so they are deleted first.
    await transaction(db, (trx) => deleteSignInCodes(trx, workspaceId))
    for (const table of getTables({ isCredential: true }))
      await deleteInBatches(db, (trx) => deleteSomeRows(trx, table, workspaceId, BATCH_SIZE), signal)
    await transaction(db, async (trx) => recordAccessChange(trx, { workspaceId }))
  }

  async function deleteRows(workspaceId: string, signal: AbortSignal): Promise<void> {
    await deleteBoxRows(workspaceId, signal)
    for (const table of getTables({ isCredential: false }))
      await deleteInBatches(db, (trx) => deleteSomeRows(trx, table, workspaceId, BATCH_SIZE), signal)
    if (signal.aborted) return
    await transaction(db, async (trx) => {
      await deleteWorkspace(trx, workspaceId)
      await deleteSchedulesOf(trx, workspaceId)
    })
    log.info({ workspaceId }, 'deleted a closed workspace')
  }

  /** Returns when to continue; undefined: the workspace is deleted or open again, or the signal is aborted. */
  async function purgeWorkspace(workspaceId: string, signal: AbortSignal): Promise<number | undefined> {
    const purge = await begin(workspaceId)
    if (purge === null) return undefined
    if ('dueAt' in purge) return purge.dueAt
    await deleteCredentials(workspaceId, signal)
    const hasNoBoxes = await removeBoxes(workspaceId, signal)
    const hasNoSnapshots = await removeSnapshots(workspaceId, signal)
    if (signal.aborted) return undefined
    if (!hasNoBoxes || !hasNoSnapshots) {
      const now = clock.now()
      return now + Math.min(Math.max((now - purge.startedAt) / 10, POLL_MS.min), POLL_MS.max)
    }
    await removeArchives(workspaceId)
    await deleteRows(workspaceId, signal)
    return undefined
  }

  return async (workspaceId, signal) => {
    const dueAt = await purgeWorkspace(workspaceId, signal)
    if (dueAt !== undefined)
      await moveSchedule(db, { kind: 'purge_workspace', target_id: workspaceId }, dueAt)
    return dueAt
  }
}
