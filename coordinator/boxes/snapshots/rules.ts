// The names and lifetimes of snapshots. Pure functions of rows and times.
import type { BoxRow } from '../../db/schema.ts'

const HOUR_MS = 60 * 60 * 1000
const DAY_MS = 24 * HOUR_MS
/** When a fork has not finished after this time, the copy that it made is deleted. */
export const TRANSIENT_LIFETIME_MS = DAY_MS
const AUTO_MIN_LIFETIME_MS = 7 * DAY_MS

/** 7 days, or longer than the snapshots that the box keeps are needed. */
export function computeAutoExpiry(
  { auto_snapshot_hours: hours, auto_snapshot_keep: keep }: BoxRow,
  now: number,
): number {
  return now + Math.max(AUTO_MIN_LIFETIME_MS, (hours ?? 0) * (keep + 1) * HOUR_MS)
}

/** A name for a snapshot that the client has not named, such as apple-fork-20300102T030405Z. */
export const createSnapshotName = (hostname: string, kind: 'fork' | 'auto' | 'final', now: number): string =>
  `${hostname}-${kind}-${new Date(now).toISOString().replace(/[-:]|\.\d+/g, '')}`
