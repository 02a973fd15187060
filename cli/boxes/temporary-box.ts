// Creates the box of box run, and deletes it with --rm, also after Ctrl-C and failures.
import type { Box } from '../../shared/api/boxes.ts'
import { boxCommand } from '../command-name.ts'
import type { Session } from '../connection/session.ts'
import { CliError } from '../output/exit-codes.ts'
import { printMessage } from '../output/print.ts'
import { waitForDeletion } from '../wait/wait-for-deletion.ts'
import { type CreateOptions, createBox } from './create-box.ts'
import { deleteBox } from './delete-box.ts'

/** The time limit of a request that Ctrl-C does not abort. */
const REQUEST_TIMEOUT_MS = 10_000

/**
 * After Ctrl-C the request is completed, and the signal's reason is thrown by the next step: without the response the name
 * of the box, which has to be deleted, is unknown.
 */
export function createBoxUninterrupted({ client, signal }: Session, options: CreateOptions): Promise<Box> {
  const controller = new AbortController()
  signal.addEventListener(
    'abort',
    () => setTimeout(() => controller.abort(signal.reason), REQUEST_TIMEOUT_MS).unref(),
    { once: true },
  )
  return createBox(client.withSignal(controller.signal), options)
}

/** Waits for the deletion, unless the command was interrupted. Prints a failure: the exit code is that of the command. */
export async function deleteTemporaryBox({ client, signal }: Session, box: Box): Promise<void> {
  const { hostname } = box
  const requestSignal = AbortSignal.timeout(REQUEST_TIMEOUT_MS)
  try {
    const { operation } = await deleteBox(client.withSignal(requestSignal), box)
    if (!signal.aborted)
      await waitForDeletion(
        { client, signal },
        { name: hostname, command: `rm ${hostname}` },
        operation,
        'terminal',
      )
  } catch (error) {
    // Ctrl-C during the wait: the coordinator completes the deletion.
    if (signal.aborted && error === signal.reason) return
    if (!(error instanceof CliError) && !requestSignal.aborted) throw error
    const reason = error instanceof CliError ? error.message : 'The coordinator did not respond.'
    printMessage(`could not delete ${hostname}. ${reason} Delete it with \`${boxCommand()} rm ${hostname}\`.`)
  }
}
