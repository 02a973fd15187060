// Schedules: what is evaluated at a set time. A feature writes the schedules of its kinds in the transaction of the change that
// needs them, and calls recordDueTime() (due-times.ts).
import type { Trx } from '../db/transaction.ts'
import { deleteAllOf, deleteSchedule, type ScheduleKey, upsertSchedule } from './schedule-store.ts'

export {
  deleteSchedule,
  findSchedule,
  insertMissingSchedule,
  listSchedulesOf,
  lockSchedule,
  moveSchedule,
  type ScheduleKey,
} from './schedule-store.ts'

/**
 * Creates the schedule, or replaces its due time.
 * @param dueAt milliseconds since the epoch; null deletes the schedule
 */
export const setSchedule = (trx: Trx, key: ScheduleKey, dueAt: number | null): Promise<unknown> =>
  dueAt === null
    ? deleteSchedule(trx, key)
    : upsertSchedule(trx, { kind: key.kind, target_id: key.target_id, due_at: dueAt })

/** Deletes all schedules of a box, a snapshot or a workspace. */
export const deleteSchedulesOf = (trx: Trx, targetId: string): Promise<unknown> => deleteAllOf(trx, targetId)
