// Writes the schedules of a box, in the transaction that changes its state or its settings.
import type { BoxRow } from '../../db/schema.ts'
import type { Trx } from '../../db/transaction.ts'
import { deleteSchedule, listSchedulesOf, moveSchedule, setSchedule } from '../../jobs/schedules.ts'

const MINUTE_MS = 60_000
const HOUR_MS = 60 * MINUTE_MS
const DEEP_SLEEP_RETRY_MS = 24 * HOUR_MS

export const BOX_SCHEDULE_KINDS = [
  'pause',
  'delete',
  'auto_pause',
  'auto_snapshot',
  'stop_frozen',
  'deep_sleep',
] as const
export type BoxScheduleKind = (typeof BOX_SCHEDULE_KINDS)[number]

/** Their due times are columns of the box. */
const AT_SET_TIMES: readonly BoxScheduleKind[] = ['pause', 'delete']

/** 'soon': the evaluation finds the due time, which depends on the settings of the coordinator. */
type FirstDueTime = number | 'soon'

/** Returns when the schedules of a box are evaluated first. A box has no schedule of a kind that is missing. */
export function listFirstDueTimes(box: BoxRow, now: number): Partial<Record<BoxScheduleKind, FirstDueTime>> {
  const { observed_state: state } = box
  if (state === 'terminating' || state === 'terminated') return {}
  const deletion = box.delete_at === null ? {} : { delete: box.delete_at }
  if (state === 'provision_failed') return deletion
  const runs = state === 'running' || state === 'degraded'
  return {
    ...deletion,
    ...(box.pause_at !== null && { pause: box.pause_at }),
    ...(runs && box.auto_pause_min !== null && { auto_pause: now + box.auto_pause_min * MINUTE_MS }),
    ...(box.auto_snapshot_hours !== null && { auto_snapshot: now + box.auto_snapshot_hours * HOUR_MS }),
    ...(state === 'suspended' && { deep_sleep: 'soon' as const }),
    ...(state === 'suspended' && box.suspended_as === 'frozen' && { stop_frozen: 'soon' as const }),
  }
}

/**
 * Adds the schedules that the box now has, and deletes the others. An existing schedule keeps its due time, except the
 * deadline, the deletion, and the kinds whose settings have changed.
 * @param box the row after the change
 */
export async function updateSchedules(
  trx: Trx,
  box: BoxRow,
  now: number,
  changedKinds: readonly BoxScheduleKind[] = [],
): Promise<void> {
  const firstDueTimes = listFirstDueTimes(box, now)
  const existing = new Map((await listSchedulesOf(trx, box.id)).map((row) => [row.kind, row.due_at]))
  for (const kind of BOX_SCHEDULE_KINDS)
    if (existing.has(kind) && !(kind in firstDueTimes)) await deleteSchedule(trx, { kind, target_id: box.id })
  for (const [kind, time] of Object.entries(firstDueTimes) as [BoxScheduleKind, FirstDueTime][]) {
    const isKept = existing.has(kind) && !AT_SET_TIMES.includes(kind) && !changedKinds.includes(kind)
    const due_at = time === 'soon' ? now : time
    if (!isKept && existing.get(kind) !== due_at) await setSchedule(trx, { kind, target_id: box.id }, due_at)
  }
}

/** Delays the next attempt after a failed deep sleep, because each attempt reads all files of the box. */
export const delayDeepSleep = (trx: Trx, boxId: string, now: number) =>
  moveSchedule(trx, { kind: 'deep_sleep', target_id: boxId }, now + DEEP_SLEEP_RETRY_MS)
