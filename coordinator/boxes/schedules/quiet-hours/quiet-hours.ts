// The schedules of quiet hours, one for each workspace that has them: due when the next period starts.
import type { Logger } from 'pino'
import type { Clock } from '../../../../shared/clock.ts'
import { lockWorkspace } from '../../../db/lock-workspace.ts'
import type { Db } from '../../../db/open.ts'
import { type Trx, transaction } from '../../../db/transaction.ts'
import type { ScheduleHandler } from '../../../http/module.ts'
import { listWorkspacesWithQuietHours, loadPolicy } from '../../../identity/policies/service.ts'
import { recordDueTime } from '../../../jobs/due-times.ts'
import { lockSchedule, type ScheduleKey, setSchedule } from '../../../jobs/schedules.ts'
import { findPeriod, nextStart } from './periods.ts'
import { createBoxSuspender } from './suspend-boxes.ts'

export type QuietHoursOptions = {
  db: Db
  clock: Clock
  log: Pick<Logger, 'error'>
  /** Schedules the box for the reconciler. */
  scheduleBox(boxId: string): void
}

export type QuietHoursSchedules = {
  /** Suspends the boxes of the workspace, once for each period. */
  handleSchedule: ScheduleHandler
  /** Call it after a change of the policy, which applies from the next start of a period. */
  reschedule(workspaceId: string): Promise<void>
  /** Call it at the start of the coordinator. Keeps a start that has passed: it is handled late. */
  scheduleAll(): Promise<void>
}

const toKey = (workspaceId: string): ScheduleKey => ({ kind: 'quiet_hours', target_id: workspaceId })

export function createQuietHours(options: QuietHoursOptions): QuietHoursSchedules {
  const { db, clock, log } = options
  const suspendBoxes = createBoxSuspender(options)

  async function findNextStart(trx: Trx, workspaceId: string, now: number): Promise<number | null> {
    const { quietHours } = await loadPolicy(trx, workspaceId)
    return quietHours === null ? null : nextStart(quietHours, now)
  }

  const reschedule = (workspaceId: string): Promise<void> =>
    transaction(db, async (trx) => {
      // The last change of the policy is also the last one that is scheduled.
      await lockWorkspace(trx, workspaceId)
      const next = await findNextStart(trx, workspaceId, clock.now())
      await setSchedule(trx, toKey(workspaceId), next)
      if (next !== null) recordDueTime(trx, next)
    })

  /** The schedule is missing if the coordinator stopped before it was written, or an earlier version stored the policy. */
  const ensureScheduled = (workspaceId: string): Promise<void> =>
    transaction(db, async (trx) => {
      await lockWorkspace(trx, workspaceId)
      const key = toKey(workspaceId)
      const existing = await lockSchedule(trx, key)
      const next = await findNextStart(trx, workspaceId, clock.now())
      if (existing === undefined || (next !== null && next < existing.due_at))
        await setSchedule(trx, key, next)
    })

  async function handleSchedule(workspaceId: string, signal: AbortSignal): Promise<number | undefined> {
    const key = toKey(workspaceId)
    const now = clock.now()
    const row = await transaction(db, (trx) => lockSchedule(trx, key))
    if (row === undefined || row.due_at > now) return row?.due_at
    const { quietHours } = await loadPolicy(db, workspaceId)
    const period = quietHours && findPeriod(quietHours, now)
    if (period !== null) await suspendBoxes({ workspaceId, since: period.start, schedule: row, signal })
    if (signal.aborted) return undefined
    return transaction(db, async (trx) => {
      const current = await lockSchedule(trx, key)
      // The policy has changed meanwhile.
      if (current?.due_at !== row.due_at) return current?.due_at
      const next = quietHours && nextStart(quietHours, now)
      await setSchedule(trx, key, next)
      return next ?? undefined
    })
  }

  return {
    handleSchedule,
    reschedule,
    async scheduleAll() {
      for (const workspaceId of await listWorkspacesWithQuietHours(db))
        await ensureScheduled(workspaceId).catch((err: unknown) =>
          // For example, the time zone has been removed from the database of time zones.
          log.error({ err, workspaceId }, 'failed to schedule the quiet hours of a workspace'),
        )
    },
  }
}
