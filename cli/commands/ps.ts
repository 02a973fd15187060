// box ps: the detached processes of a box.
import type { Command } from 'commander'
import type { ExecList, ProcessFields } from '../../shared/api/processes.ts'
import { type JsonOption, jsonOption } from '../options.ts'
import { age, print, printJson, say, table, terminalWidth } from '../output.ts'
import { endWords } from '../process-words.ts'
import type { Run } from '../session.ts'

export function addPs(program: Command, run: Run): void {
  program
    .command('ps')
    .summary('list the detached processes of a box')
    .description(
      'Lists the processes that `box exec -d` started, newest first, ended ones too. A lost one ended with its box: how is not known.',
    )
    .argument('<name>', "the box's name or id")
    .addOption(jsonOption())
    .addHelpText(
      'after',
      `
Examples:
  box ps fig
  box ps fig --json | jq -r '.processes[] | select(.running) | .processId'`,
    )
    .action((name: string, { json }: JsonOption) =>
      run(async ({ client }) => {
        const list = await (await client.edge(name)).json<ExecList>('GET', '/exec')
        if (json) printJson(list)
        else if (list.processes.length > 0) print(listing(list.processes, Date.now()))
        else say(`No detached process is known on ${name}. \`box exec -d ${name} -- COMMAND\` starts one.`)
        return undefined
      }),
    )
}

const HEAD = ['ID', 'PID', 'STATE', 'STARTED', 'COMMAND']

const listing = (processes: readonly ProcessFields[], now: number): string =>
  table(
    [
      HEAD,
      ...processes.map((process) => [
        process.processId,
        String(process.pid),
        stateOf(process),
        `${age(process.startedAt, now)} ago`,
        process.command,
      ]),
    ],
    terminalWidth(),
  )

function stateOf({ running, lost, exitCode, signal }: ProcessFields): string {
  if (running) return 'running'
  if (lost) return 'lost'
  return endWords(signal === null ? 'exited' : 'killed', { exitCode, signal })
}
