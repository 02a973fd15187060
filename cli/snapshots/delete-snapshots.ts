// box snapshots rm: deletes snapshots, after a question on a terminal.
import type { Operation } from '../../shared/api/operations.ts'
import type { Snapshot } from '../../shared/api/snapshots.ts'
import type { OutputOptions } from '../arguments/options.ts'
import type { Session } from '../connection/session.ts'
import { startBatch } from '../output/batch.ts'
import { canAsk, confirm } from '../output/confirm.ts'
import { EXIT } from '../output/exit-codes.ts'
import { printJson, printMessage, printStderr, sanitize } from '../output/print.ts'
import { getProgress } from '../output/status-line.ts'
import { formatDeletionStatus, waitForDeletion } from '../wait/wait-for-deletion.ts'
import { createNoSuchSnapshotError, loadSnapshots, selectSnapshot } from './find-snapshot.ts'

export type DeleteOptions = OutputOptions & { force?: boolean; yes?: boolean }

type Deletion = { snapshot: Snapshot; operation: Operation }

/** Returns the exit code. */
export async function deleteSnapshots(
  session: Session,
  typedNames: string[],
  options: DeleteOptions,
): Promise<number> {
  const { force, yes, wait, json, quiet } = options
  const names = [...new Set(typedNames)]
  const batch = startBatch(names)
  const { snapshots } = await loadSnapshots(session.client, '?transient=1')
  const found = await batch.run(names, async (name) => {
    const snapshot = selectSnapshot(snapshots, name)
    if (snapshot === undefined && !force)
      throw await createNoSuchSnapshotError(session.client, snapshots, name)
    return snapshot
  })
  const selected = [...new Set(found.filter((snapshot) => snapshot !== undefined))]
  if (selected.length === 0) {
    if (json && force) printJson(null)
    return batch.exitCode
  }
  if (!yes && !force && canAsk(json ?? false) && !(await confirm(formatQuestion(selected), session.signal))) {
    printMessage('nothing was deleted.')
    return EXIT.failed
  }
  const deleting = await batch.run(selected, async ({ id, name }) => ({
    name,
    response: await session.client.request<Deletion>('DELETE', `/snapshots/${encodeURIComponent(id)}`),
  }))
  await batch.run(deleting, async ({ name, response }) => {
    const operation = wait
      ? await waitForDeletion(
          session,
          { name, command: `snapshots rm ${response.snapshot.id}` },
          response.operation,
          getProgress(options) === 'none' ? 'none' : 'terminal',
        )
      : response.operation
    if (json) printJson({ ...response, operation })
    else if (!quiet) printStderr(`${sanitize(name)}: ${formatDeletionStatus(operation)}`)
  })
  return batch.exitCode
}

function formatQuestion(snapshots: readonly Snapshot[]): string {
  const names = snapshots.map(({ name, templateName }) =>
    sanitize(templateName === null ? name : `${name}, the template ${templateName}`),
  )
  return snapshots.length === 1
    ? `Delete the snapshot ${names[0]}?`
    : `Delete ${snapshots.length} snapshots (${names.join('; ')})?`
}
