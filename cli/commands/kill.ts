// box kill: terminates detached processes.
import type { Command } from 'commander'
import type { ExecKilled } from '../../shared/api/processes.ts'
import type { EdgeClient } from '../client.ts'
import { CliError, EXIT } from '../exit-codes.ts'
import { createJsonOption, type JsonOption } from '../options.ts'
import { printJson, printMessage, printStderr } from '../output.ts'
import { noSuchProcessMessage, replaceNotFoundMessage } from '../process-messages.ts'
import type { RunAction } from '../session.ts'

export function addKillCommand(program: Command, runAction: RunAction): void {
  program
    .command('kill')
    .summary('terminate detached processes of a box')
    .description(
      'Terminates processes that `box exec -d` started, with all their child processes: sends SIGTERM, then SIGKILL to ' +
        'those that do not exit. A process that has already exited is not an error.',
    )
    .argument('<name>', "the box's name or id")
    .argument('<id...>', 'ids from `box exec -d` or `box ps`')
    .addOption(createJsonOption())
    .addHelpText(
      'after',
      `
Examples:
  box kill fig p_0123456789abcdef01234567
  box kill fig $(box ps fig --json | jq -r '.processes[] | select(.running) | .processId')

With several ids, each one is tried; the exit code is that of the first failure.`,
    )
    .action((name: string, ids: string[], { json }: JsonOption) =>
      runAction(async ({ client }) => {
        const edge = await client.createEdgeClient(name)
        let exitCode: number = EXIT.ok
        for (const id of ids) {
          try {
            const result = await killProcess(edge, name, id)
            if (json) printJson(result)
            else printStderr(`${id}: ${describeResult(result)}`)
          } catch (error) {
            if (!(error instanceof CliError) || ids.length === 1 || !concernsOneProcess(error)) throw error
            printMessage(error.message)
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
const concernsOneProcess = ({ code }: CliError): boolean => code === 'not_found' || code === 'exec_failed'

function describeResult({ wasRunning, signal }: ExecKilled): string {
  if (!wasRunning) return 'already exited'
  return signal === 'KILL' ? 'killed (SIGKILL; it did not exit on SIGTERM)' : 'terminated (SIGTERM)'
}
