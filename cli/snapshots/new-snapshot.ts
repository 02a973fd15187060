// Waits for a new snapshot or template, and prints it: box snapshot and box template.
import type { Snapshot } from '../../shared/api/snapshots.ts'
import type { OutputOptions } from '../arguments/options.ts'
import { boxCommand } from '../command-name.ts'
import type { Session } from '../connection/session.ts'
import { printIfInterrupted } from '../exec/request.ts'
import { colorize, getStateColor } from '../output/colors.ts'
import { print, printJson, printStderr, sanitize } from '../output/print.ts'
import { getProgress } from '../output/status-line.ts'
import { formatSize } from './snapshot-list.ts'
import { waitForSnapshot } from './wait-for-snapshot.ts'

export type NewSnapshotOptions = OutputOptions & { description?: string }

/** Waits until the snapshot is available, unless --no-wait is given. @param result printed on stdout */
export async function finishSnapshot(
  session: Session,
  created: Snapshot,
  options: NewSnapshotOptions,
  result: (snapshot: Snapshot) => string,
): Promise<void> {
  const progress = getProgress(options)
  const snapshot = options.wait
    ? await printIfInterrupted(
        session,
        `interrupted. The snapshot ${created.name} continues: \`${boxCommand()} wait ${created.id}\` waits for it.`,
        () => waitForSnapshot(session, created, progress),
      )
    : created
  if (options.json) {
    printJson(snapshot)
    return
  }
  if (progress !== 'none') printStderr(formatResult(snapshot))
  print(sanitize(result(snapshot)))
}

/** Such as `fig-20260131-031415: available, 1.20 GiB, processes paused for 35 ms`. */
function formatResult(snapshot: Snapshot): string {
  const { name, status, pausedMs } = snapshot
  const shownStatus = colorize(sanitize(status), getStateColor(status), process.stderr)
  if (status !== 'available') return `${sanitize(name)}: ${shownStatus}`
  const pause = pausedMs === null ? '' : `, processes paused for ${pausedMs} ms`
  return `${sanitize(name)}: ${shownStatus}, ${formatSize(snapshot)}${pause}`
}

/** Such as fig-20260131-031415, in UTC. */
export function createSnapshotName(hostname: string, now: Date): string {
  const [date = '', time = ''] = now
    .toISOString()
    .replace(/\.\d+Z$/, '')
    .split('T')
  return `${hostname}-${date.replaceAll('-', '')}-${time.replaceAll(':', '')}`
}
