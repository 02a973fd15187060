// Waits for a snapshot to be available.
import type { Snapshot } from '../../shared/api/snapshots.ts'
import { boxCommand } from '../command-name.ts'
import { CliError, EXIT } from '../output/exit-codes.ts'
import { sanitize } from '../output/print.ts'
import { type Progress, showStatus } from '../output/status-line.ts'
import { type PollUntilOptions, pollUntil, type WaitSession } from '../wait/poll-until.ts'
import { loadSnapshots } from './find-snapshot.ts'

type Timeout = Pick<PollUntilOptions<Snapshot>, 'timeoutMs' | 'createTimeoutError'>

/** @throws CliError when the snapshot has failed or was deleted, and on timeout */
export function waitForSnapshot(
  session: WaitSession,
  { id, name }: Snapshot,
  progress: Progress,
  timeout: Timeout = {},
): Promise<Snapshot> {
  const shownName = sanitize(name)
  return showStatus(progress, (update) => {
    update(`${shownName}: creating`)
    return pollUntil(session, {
      subject: `The snapshot ${shownName}`,
      ...timeout,
      async getResult() {
        // The API has no route for one snapshot.
        const { snapshots } = await loadSnapshots(session.client, '?transient=1')
        const snapshot = snapshots.find((candidate) => candidate.id === id)
        if (snapshot === undefined || snapshot.status === 'deleting')
          throw new CliError(EXIT.failed, `The snapshot ${shownName} was deleted.`)
        if (snapshot.status === 'failed') throw snapshotFailedError(snapshot)
        return snapshot.status === 'available' ? snapshot : null
      },
    })
  })
}

const snapshotFailedError = ({ id, name, error }: Snapshot): CliError =>
  new CliError(
    EXIT.failed,
    `The snapshot ${sanitize(name)} failed: ${sanitize(error ?? 'no reason was given')}. Delete it with \`${boxCommand()} snapshots rm ${sanitize(id)}\` and take another.`,
  )
