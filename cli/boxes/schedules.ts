// The schedules of a box as text: when it is suspended or deleted, and when snapshots are taken.
import type { Box } from '../../shared/api/boxes.ts'
import { formatLocalTime, formatSetting } from '../output/format.ts'

const MINUTE_MS = 60_000
const HOUR_MS = 3_600_000

/** Name and text of each schedule that is set. */
export function formatSchedules(
  { pauseAt, deleteAt, autoPauseMin, autoSnapshotHours, autoSnapshotKeep }: Box,
  now: number,
): [string, string][] {
  const schedules: [string, string][] = []
  const formatTime = (at: string): string => {
    const time = Date.parse(at)
    return `${formatLocalTime(time)} (in ${formatSetting(roundUp(Math.max(0, time - now)))})`
  }
  if (pauseAt !== null) schedules.push(['suspend at', formatTime(pauseAt)])
  if (autoPauseMin !== null)
    schedules.push(['suspend when', `idle for ${formatSetting(autoPauseMin * MINUTE_MS)}`])
  if (autoSnapshotHours !== null)
    schedules.push([
      'snapshot every',
      `${formatSetting(autoSnapshotHours * HOUR_MS)}, keeping ${autoSnapshotKeep === 1 ? 'the last one' : `the last ${autoSnapshotKeep}`}`,
    ])
  // An earlier coordinator does not send it.
  if (deleteAt != null) schedules.push(['delete at', formatTime(deleteAt)])
  return schedules
}

/** Rounds to minutes, so that a deadline of two hours is shown as 2h immediately after it was set. */
const roundUp = (milliseconds: number): number => Math.ceil(milliseconds / MINUTE_MS) * MINUTE_MS
