// box rm: deletes a box.
import type { Command } from 'commander'
import type { Box } from '../../shared/api/boxes.ts'
import type { Operation } from '../../shared/api/operations.ts'
import { CliError, EXIT } from '../exit-codes.ts'
import { createJsonOption, createNoWaitOption, type JsonOption, type WaitOption } from '../options.ts'
import { printJson, printStderr } from '../output.ts'
import type { RunAction, Session } from '../session.ts'
import { waitForOperation } from '../wait.ts'

type Options = JsonOption & WaitOption & { force?: boolean }

export function addRmCommand(program: Command, runAction: RunAction): void {
  program
    .command('rm')
    .summary('delete a box')
    .description(
      'Deletes a box, its files and its processes, without confirmation, and waits until the deletion is complete.',
    )
    .argument('<name>', "the box's name or id")
    .option('-f, --force', 'exit with 0 if the box does not exist')
    .addOption(createNoWaitOption())
    .addOption(createJsonOption())
    .addHelpText(
      'after',
      `
Examples:
  box rm fig
  box rm -f fig`,
    )
    .action((name: string, options: Options) => runAction((session) => deleteBox(session, name, options)))
}

async function deleteBox(session: Session, name: string, options: Options): Promise<undefined> {
  const box = await session.client.findBox(name).catch((error) => {
    if (options.force && error instanceof CliError && error.exitCode === EXIT.notFound) return null
    throw error
  })
  if (box === null) {
    if (options.json) printJson(null)
    return
  }
  const response = await session.client.request<{ box: Box; operation: Operation }>(
    'DELETE',
    `/boxes/${box.id}`,
  )
  const operation = options.wait ? await waitForOperation(session, response.operation) : response.operation
  if (options.json) printJson({ ...response, operation })
  else printStderr(`${box.hostname}: ${formatDeletionStatus(operation)}`)
}

function formatDeletionStatus({ status }: Operation): string {
  if (status === 'completed') return 'deleted'
  return status === 'failed' ? 'deletion failed' : 'deleting'
}
