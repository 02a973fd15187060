// box rm: deletes a box.
import type { Command } from 'commander'
import type { Box } from '../../shared/api/boxes.ts'
import type { Operation } from '../../shared/api/operations.ts'
import { EXIT, Failure } from '../exit-codes.ts'
import { type JsonOption, jsonOption, noWaitOption, type WaitOption } from '../options.ts'
import { printJson, say } from '../output.ts'
import type { Run, Session } from '../session.ts'
import { waitForOperation } from '../wait.ts'

type Options = JsonOption & WaitOption & { force?: boolean }

export function addRm(program: Command, run: Run): void {
  program
    .command('rm')
    .summary('delete a box')
    .description(
      'Deletes a box with all its files and processes, and waits until it is gone. It does not ask.',
    )
    .argument('<name>', 'its name or id')
    .option('-f, --force', 'a box that does not exist is no error')
    .addOption(noWaitOption())
    .addOption(jsonOption())
    .addHelpText(
      'after',
      `
Examples:
  box rm fig
  box rm -f fig        exits with 0 when there is no fig, as rm -f does`,
    )
    .action((name: string, options: Options) => run((session) => remove(session, name, options)))
}

async function remove(session: Session, name: string, options: Options): Promise<undefined> {
  const found = await session.client.findBox(name).catch((error) => {
    if (options.force && error instanceof Failure && error.exitCode === EXIT.notFound) return null
    throw error
  })
  if (found === null) {
    if (options.json) printJson(null)
    return
  }
  const answer = await session.client.control<{ box: Box; operation: Operation }>(
    'DELETE',
    `/boxes/${found.id}`,
  )
  const operation = options.wait ? await waitForOperation(session, answer.operation) : answer.operation
  if (options.json) printJson({ ...answer, operation })
  else
    say(`${found.hostname}: ${operation.status === 'completed' ? 'deleted' : `delete ${operation.status}`}`)
}
