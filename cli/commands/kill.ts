// box kill: terminates detached processes.
import type { Command } from 'commander'
import type { ExecKilled } from '../../shared/api/processes.ts'
import { createJsonOption, type JsonOption } from '../arguments/options.ts'
import { AMBIGUOUS_ID } from '../arguments/unique-prefix.ts'
import type { EdgeClient } from '../connection/client.ts'
import type { RunAction } from '../connection/session.ts'
import { CliError, EXIT } from '../output/exit-codes.ts'
import { printJson, printStderr } from '../output/print.ts'
import { printError } from '../output/print-error.ts'
import { createIdFinder } from '../processes/find-process.ts'
import { noSuchProcessMessage, replaceNotFoundMessage } from '../processes/process-messages.ts'

export function addKillCommand(program: Command, runAction: RunAction): void {
  program
    .command('kill')
    .summary('terminate detached processes of a box')
    .description(
      'Terminates processes that `box exec -d` started, with all their child processes: sends SIGTERM, then SIGKILL to ' +
        'those that do not exit. A process that has already exited is not an error.',
    )
    .argument('<name>', "the box's name or id")
    .argument('<id...>', 'ids from `box exec -d` or `box ps`, or their first characters')
    .addOption(createJsonOption())
    .addHelpText(
      'after',
      `
Examples:
  box kill fig p_8b49
  box ps fig -q --filter state=running | xargs -r box kill fig

With several ids, each one is tried; the exit code is that of the first failure.`,
    )
    .action((name: string, ids: string[], { json }: JsonOption) =>
      runAction(async ({ client }) => {
        const edge = await client.createEdgeClient(name)
        let exitCode: number = EXIT.ok
        const findId = createIdFinder(edge)
        for (const typed of ids) {
          try {
            const id = await findId(typed)
            const result = await killProcess(edge, name, id)
            if (json) printJson(result)
            else printStderr(`${id}: ${describeResult(result)}`)
          } catch (error) {
            if (!(error instanceof CliError) || ids.length === 1 || !concernsOneProcess(error)) throw error
            printError(error)
            exitCode ||= error.exitCode
          }
        }
        return exitCode
      }),
    )
}

const killProcess = (edge: EdgeClient, name: string, id: string): Promise<ExecKilled> =>
  replaceNotFoundMessage(
    edge.requestJson<ExecKilled>('DELETE', `/exec/${encodeURIComponent(id)}`),
    noSuchProcessMessage(name, id),
  )

/** Other errors would occur again for the next id. */
const concernsOneProcess = ({ code }: CliError): boolean =>
  code === 'not_found' || code === 'exec_failed' || code === AMBIGUOUS_ID

function describeResult({ wasRunning, signal }: ExecKilled): string {
  if (!wasRunning) return 'already exited'
  return signal === 'KILL' ? 'killed (SIGKILL; it did not exit on SIGTERM)' : 'terminated (SIGTERM)'
}
