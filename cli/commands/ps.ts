// box ps: lists the detached processes of a box.
import type { Command } from 'commander'
import type { ExecList, ProcessFields } from '../../shared/api/processes.ts'
import { createJsonOption, type JsonOption } from '../options.ts'
import { formatAge, formatTable, getTerminalWidth, print, printJson, printStderr } from '../output.ts'
import { formatExit } from '../process-messages.ts'
import type { RunAction } from '../session.ts'

export function addPsCommand(program: Command, runAction: RunAction): void {
  program
    .command('ps')
    .summary('list the detached processes of a box')
    .description(
      'Lists the processes that `box exec -d` started, newest first, including those that have exited. The exit status ' +
        'of a lost process is unknown: its box stopped or restarted while it was running. `box history` also works while ' +
        'the box is suspended.',
    )
    .argument('<name>', "the box's name or id")
    .addOption(createJsonOption())
    .addHelpText(
      'after',
      `
Examples:
  box ps fig
  box ps fig --json | jq -r '.processes[] | select(.running) | .processId'`,
    )
    .action((name: string, { json }: JsonOption) =>
      runAction(async ({ client }) => {
        const list = await (await client.createEdgeClient(name)).requestJson<ExecList>('GET', '/exec')
        if (json) printJson(list)
        else if (list.processes.length > 0) print(formatProcesses(list.processes, Date.now()))
        else
          printStderr(`No detached processes on ${name}. Start one with \`box exec -d ${name} -- COMMAND\`.`)
        return undefined
      }),
    )
}

const TABLE_HEADER = ['ID', 'PID', 'STATE', 'STARTED', 'COMMAND']

const formatProcesses = (processes: readonly ProcessFields[], now: number): string =>
  formatTable(
    [
      TABLE_HEADER,
      ...processes.map((process) => [
        process.processId,
        String(process.pid),
        formatState(process),
        `${formatAge(process.startedAt, now)} ago`,
        process.command,
      ]),
    ],
    getTerminalWidth(),
  )

function formatState({ running, lost, exitCode, signal, timedOut }: ProcessFields): string {
  if (running) return 'running'
  if (lost) return 'lost'
  const status = timedOut ? 'timed_out' : signal === null ? 'exited' : 'killed'
  return formatExit(status, { exitCode, signal })
}
