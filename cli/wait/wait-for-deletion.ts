// Waits for the deletion of a box or a snapshot to complete.
import type { Operation } from '../../shared/api/operations.ts'
import { boxCommand } from '../command-name.ts'
import { CliError, EXIT } from '../output/exit-codes.ts'
import { sanitize } from '../output/print.ts'
import { type Progress, showStatus } from '../output/status-line.ts'
import { pollUntil, type WaitSession } from './poll-until.ts'

/**
 * Returns the completed operation (spec §2.5). Throws CliError on timeout or failure.
 * @param command the command that deletes, such as `rm fig`
 */
export function waitForDeletion(
  session: WaitSession,
  { name, command }: { name: string; command: string },
  operation: Operation,
  progress: Progress,
): Promise<Operation> {
  return showStatus(progress, (update) => {
    update(`${sanitize(name)}: deleting`)
    return pollUntil(session, {
      subject: `The deletion of ${sanitize(name)}`,
      async getResult() {
        const path = `/operations/${encodeURIComponent(operation.id)}`
        const response = await session.client.request<{ operation: Operation }>('GET', path)
        const { status, error } = response.operation
        if (status === 'failed')
          throw new CliError(
            EXIT.failed,
            `The deletion of ${sanitize(name)} failed: ${sanitize(error ?? 'no reason was given')}. Run \`${boxCommand()} ${command}\` again.`,
          )
        return status === 'completed' ? response.operation : null
      },
    })
  })
}

export function formatDeletionStatus({ status }: Operation): string {
  if (status === 'completed') return 'deleted'
  return status === 'failed' ? 'deletion failed' : 'deleting'
}
