// Selects the ended runs to delete. Pure.
import { expiredProcessIds, type Retention } from '../../exec/detached/retention.ts'
import type { RunRecord } from './run-record.ts'

const DAY_MS = 24 * 60 * 60 * 1000
export const DEFAULT_RUN_RETENTION: Retention = { count: 500, ageMs: 30 * DAY_MS, totalLogBytes: 1024 ** 3 }

/**
 * Returns the oldest runs beyond the limits, except runs in progress and the newest run of each conversation.
 * @param records of all runs, oldest first
 */
export function findExpiredRuns(records: readonly RunRecord[], now: number, keep: Retention): string[] {
  const newest = new Set(new Map(records.map(({ id, conversationId }) => [conversationId, id])).values())
  const ended = records.flatMap(({ id, result }) =>
    result === null ? [] : [{ processId: id, exitedAt: result.finishedAt, logBytes: result.logBytes }],
  )
  return expiredProcessIds(ended, now, keep).filter((id) => !newest.has(id))
}
