// Evaluates a due schedule of a box, and makes its change in the same transaction: a schedule never runs twice.
import { recordBoxChange } from '../../audit/record-change.ts'
import { lockBox } from '../../db/lock-box.ts'
import type { Db } from '../../db/open.ts'
import type { BoxRow } from '../../db/schema.ts'
import { type Trx, transaction } from '../../db/transaction.ts'
import { deleteSchedule, lockSchedule, moveSchedule } from '../../jobs/schedules.ts'
import { enqueueSleep, enqueueStop } from '../lifecycle/enqueue-jobs.ts'
import { suspendBySystem } from '../lifecycle/suspend-by-system.ts'
import type { BoxScheduleKind } from '../lifecycle/update-schedules.ts'
import type { Snapshots } from '../snapshots/snapshots.ts'
import { updateBox } from '../store/boxes.ts'
import { findJob } from '../store/jobs.ts'
import { findLastAutoSnapshotTime } from '../store/snapshots.ts'
import { evaluate, type Facts, nextEvaluation } from './evaluate.ts'

const MINUTE_MS = 60_000
const HOUR_MS = 60 * MINUTE_MS
const DAY_MS = 24 * HOUR_MS

export type BoxSchedulesOptions = {
  db: Db
  snapshots: Pick<Snapshots, 'enqueueAutoSnapshot'>
  /** Requests the deletion of a box, which is locked. */
  removeBox(trx: Trx, box: BoxRow, by: { now: number; reason: string }): Promise<void>
  /** Schedules the box for the reconciler. */
  scheduleBox(boxId: string): void
}

export type BoxScheduleRun = {
  kind: BoxScheduleKind
  boxId: string
  facts: Omit<Facts, 'hasJob' | 'lastAutoSnapshotAt'>
  /** Makes no change, and leaves the schedule due. */
  isDryRun?: boolean
}

export type BoxScheduleResult = {
  /** The change was due. */
  isDue: boolean
  /** When the schedule is evaluated next. undefined: it has been deleted. */
  nextAt?: number | undefined
}

export type RunBoxSchedule = (run: BoxScheduleRun) => Promise<BoxScheduleResult>

/** The returned function moves or deletes a schedule whose change is not due. */
export function createBoxSchedules({
  db,
  snapshots,
  removeBox,
  scheduleBox,
}: BoxSchedulesOptions): RunBoxSchedule {
  const actor = 'system'

  const changes: Record<BoxScheduleKind, (trx: Trx, box: BoxRow, facts: Facts) => Promise<unknown>> = {
    async pause(trx, box, { now }) {
      await updateBox(trx, box.id, { pause_at: null, updated_at: now })
      await deleteSchedule(trx, { kind: 'pause', target_id: box.id })
      if (box.desired_state === 'running')
        await suspendBySystem(trx, box, { now, reason: 'deadline reached' })
    },
    delete: (trx, box, { now }) => removeBox(trx, box, { now, reason: describeDeletion(box) }),
    auto_pause: (trx, box, { now }) =>
      suspendBySystem(trx, box, { now, reason: `idle for ${box.auto_pause_min} minutes` }),
    auto_snapshot: (trx, box, { now }) => snapshots.enqueueAutoSnapshot(trx, box, now),
    async stop_frozen(trx, box, { now, settings, isMemoryScarce }) {
      const reason = isMemoryScarce
        ? 'stopped: the memory of the machine is scarce'
        : `stopped: frozen for ${settings.freezeMs / MINUTE_MS} minutes`
      if (!(await enqueueStop(trx, box, { now, reason }))) return
      recordBoxChange(trx, 'box.suspend', box, { actor, now }, { stop: true, reason })
    },
    async deep_sleep(trx, box, { now, settings }) {
      const reason = `packed into an archive: suspended for ${settings.deepSleepMs / DAY_MS} days`
      if (!(await enqueueSleep(trx, box, { now, reason }))) return
      recordBoxChange(trx, 'box.sleep', box, { actor, now }, { reason })
    },
  }

  return ({ kind, boxId, facts: givenFacts, isDryRun = false }) =>
    transaction(db, async (trx, onCommit) => {
      const key = { kind, target_id: boxId }
      const { now } = givenFacts
      // This transaction locks the box before its schedules, like every other one.
      const box = await lockBox(trx, boxId)
      const row = await lockSchedule(trx, key)
      // Another evaluation has moved or deleted the schedule.
      if (!row || row.due_at > now) return { isDue: false, nextAt: row?.due_at }
      const facts: Facts = {
        ...givenFacts,
        hasJob: await hasJob(trx, boxId),
        lastAutoSnapshotAt: kind === 'auto_snapshot' ? await findLastAutoSnapshotTime(trx, boxId) : null,
      }
      const decision = box ? evaluate(kind, box, facts) : 'none'
      if (!box || decision === 'none') {
        await deleteSchedule(trx, key)
        return { isDue: false }
      }
      if (decision === 'act' && isDryRun) return { isDue: true, nextAt: row.due_at }
      const isDue = decision === 'act'
      const nextAt = isDue ? nextEvaluation(kind, box, now) : decision.notBefore
      // The schedule is moved before the change, which may delete it.
      await moveSchedule(trx, key, nextAt)
      if (isDue) {
        await changes[kind](trx, box, facts)
        onCommit(() => scheduleBox(boxId))
      }
      return { isDue, nextAt }
    })
}

/** Why a box is deleted, for its events and the audit log. */
function describeDeletion({ created_at, delete_at, delete_after_min }: BoxRow): string {
  const minutes = delete_after_min ?? 0
  const isSetAtCreation = delete_at === created_at + minutes * MINUTE_MS
  return isSetAtCreation
    ? `deleted after ${formatMinutes(minutes)}, as set at its creation`
    : `deleted ${formatMinutes(minutes)} after its deletion was set`
}

function formatMinutes(minutes: number): string {
  const ms = minutes * MINUTE_MS
  if (ms % DAY_MS === 0) return `${ms / DAY_MS} d`
  return ms % HOUR_MS === 0 ? `${ms / HOUR_MS} h` : `${minutes} min`
}

/** Whether a change of the box's state is in progress. */
async function hasJob(trx: Trx, boxId: string): Promise<boolean> {
  const job = await findJob(trx, boxId)
  return job !== undefined && job.op !== 'clean_up'
}
