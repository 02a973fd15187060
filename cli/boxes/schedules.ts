// The schedules of a box as text: when it is suspended, and when snapshots are taken.
import type { Box } from '../../shared/api/boxes.ts'
import { formatLocalTime, formatSetting } from '../output/format.ts'

const MINUTE_MS = 60_000
const HOUR_MS = 3_600_000

/** Name and text of each schedule that is set. */
export function formatSchedules(
  { pauseAt, autoPauseMin, autoSnapshotHours, autoSnapshotKeep }: Box,
  now: number,
): [string, string][] {
  const schedules: [string, string][] = []
  if (pauseAt !== null) {
    const time = Date.parse(pauseAt)
    schedules.push(['suspend at', `${formatLocalTime(time)} (in ${formatSetting(roundUp(time - now))})`])
  }
  if (autoPauseMin !== null)
    schedules.push(['suspend when', `idle for ${formatSetting(autoPauseMin * MINUTE_MS)}`])
  if (autoSnapshotHours !== null)
    schedules.push([
      'snapshot every',
      `${formatSetting(autoSnapshotHours * HOUR_MS)}, keeping ${autoSnapshotKeep === 1 ? 'the last one' : `the last ${autoSnapshotKeep}`}`,
    ])
  return schedules
}

/** Rounds to minutes, so that a deadline of two hours is shown as 2h immediately after it was set. */
const roundUp = (milliseconds: number): number => Math.ceil(milliseconds / MINUTE_MS) * MINUTE_MS
