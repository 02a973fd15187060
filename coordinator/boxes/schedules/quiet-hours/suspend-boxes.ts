// Suspends the running boxes of a workspace when its quiet hours start.
import { setImmediate } from 'node:timers/promises'
import type { Logger } from 'pino'
import type { Clock } from '../../../../shared/clock.ts'
import { lockBox } from '../../../db/lock-box.ts'
import type { Db } from '../../../db/open.ts'
import type { BoxRow, ScheduleRow } from '../../../db/schema.ts'
import { type Trx, transaction } from '../../../db/transaction.ts'
import { lockSchedule } from '../../../jobs/schedules.ts'
import { suspendBySystem } from '../../lifecycle/suspend-by-system.ts'
import { listBoxesToQuiet } from '../../store/box-lists.ts'
import { hasEventOfUser } from '../../store/events.ts'
import { findJob } from '../../store/jobs.ts'

export type BoxSuspenderOptions = {
  db: Db
  clock: Clock
  log: Pick<Logger, 'error'>
  /** Schedules the box for the reconciler. */
  scheduleBox(boxId: string): void
}

export type QuietStart = {
  workspaceId: string
  /** The start of the period, in milliseconds since the epoch. A box that was created or woken since stays awake. */
  since: number
  /** The schedule that is handled. When it has been moved or deleted, the rest of the boxes is not suspended. */
  schedule: ScheduleRow
  /** Aborts between two boxes. */
  signal: AbortSignal
}

const BATCH_SIZE = 100
const REASON = 'quiet hours'

export function createBoxSuspender(options: BoxSuspenderOptions) {
  const { db, clock, log, scheduleBox } = options

  return async ({ workspaceId, since, schedule, signal }: QuietStart): Promise<void> => {
    let boxes = await listBoxesToQuiet(db, workspaceId, undefined, BATCH_SIZE)
    while (boxes.length > 0) {
      for (const { id } of boxes) {
        if (signal.aborted || !(await suspendOrLog(id))) return
      }
      await setImmediate()
      boxes = await listBoxesToQuiet(db, workspaceId, boxes.at(-1), BATCH_SIZE)
    }

    /** A box that cannot be suspended does not keep the others awake. */
    async function suspendOrLog(boxId: string): Promise<boolean> {
      try {
        return await suspend(boxId)
      } catch (err) {
        log.error({ err, boxId }, 'failed to suspend a box for quiet hours')
        return true
      }
    }

    /** Returns false when the schedule has changed. */
    function suspend(boxId: string): Promise<boolean> {
      return transaction(db, async (trx, onCommit) => {
        const box = await lockBox(trx, boxId)
        const current = await lockSchedule(trx, schedule)
        if (current?.due_at !== schedule.due_at) return false
        if (box === undefined || !isAffected(box) || (await wasStarted(trx, box, since))) return true
        await suspendBySystem(trx, box, { reason: REASON, now: clock.now() })
        onCommit(() => scheduleBox(boxId))
        return true
      })
    }
  }
}

const isAffected = (box: BoxRow): boolean =>
  box.kind === 'managed' &&
  box.quiet_hours_exempt === 0 &&
  box.desired_state === 'running' &&
  box.observed_state !== 'provision_failed'

/** Whether a user has created or woken the box since. A restarted coordinator also wakes boxes. */
async function wasStarted(trx: Trx, box: BoxRow, since: number): Promise<boolean> {
  if (box.created_at >= since) return true
  const job = await findJob(trx, box.id)
  if (job?.op === 'wake' && job.created_at >= since && job.actor !== 'system') return true
  return hasEventOfUser(trx, box.id, 'waking', since)
}
