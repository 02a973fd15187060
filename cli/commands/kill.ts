// box kill: ends detached processes.
import type { Command } from 'commander'
import type { ExecKilled } from '../../shared/api/processes.ts'
import type { Edge } from '../client.ts'
import { EXIT, Failure } from '../exit-codes.ts'
import { type JsonOption, jsonOption } from '../options.ts'
import { printJson, say } from '../output.ts'
import { noProcess, orNone } from '../process-words.ts'
import type { Run } from '../session.ts'

export function addKill(program: Command, run: Run): void {
  program
    .command('kill')
    .summary('end detached processes of a box')
    .description(
      'Ends processes that `box exec -d` started, each with all that it started: by TERM, and by KILL what does not ' +
        'go by that. One that has ended already is no error.',
    )
    .argument('<name>', "the box's name or id")
    .argument('<id...>', 'as `box exec -d` printed it and `box ps` shows it')
    .addOption(jsonOption())
    .addHelpText(
      'after',
      `
Examples:
  box kill fig p_0123456789abcdef01234567
  box kill fig $(box ps fig --json | jq -r '.processes[] | select(.running) | .processId')

Of several ids each is tried; the exit code is that of the first that failed.`,
    )
    .action((name: string, ids: string[], { json }: JsonOption) =>
      run(async ({ client }) => {
        const edge = await client.edge(name)
        let exitCode: number = EXIT.ok
        for (const id of ids) {
          try {
            const killed = await end(edge, name, id)
            if (json) printJson(killed)
            else say(`${id}: ${whatWasNeeded(killed)}`)
          } catch (error) {
            if (!(error instanceof Failure) || ids.length === 1 || !isItsOwn(error)) throw error
            say(`box: ${error.message}`)
            exitCode ||= error.exitCode
          }
        }
        return exitCode
      }),
    )
}

const end = (edge: Edge, name: string, id: string): Promise<ExecKilled> =>
  orNone(edge.json<ExecKilled>('DELETE', `/exec/${encodeURIComponent(id)}`), noProcess(name, id))

/** Whatever else went wrong would go wrong with the next one, too. */
const isItsOwn = ({ code }: Failure): boolean => code === 'not_found' || code === 'exec_failed'

function whatWasNeeded({ wasRunning, signal }: ExecKilled): string {
  if (!wasRunning) return 'had ended already'
  return signal === 'KILL' ? 'ended by KILL: TERM did not suffice' : 'ended by TERM'
}
