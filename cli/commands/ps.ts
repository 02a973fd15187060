// box ps: lists the detached processes of a box.
import type { Command } from 'commander'
import type { ProcessFields } from '../../shared/api/processes.ts'
import { boxCommand } from '../command-name.ts'
import type { RunAction } from '../connection/session.ts'
import type { List } from '../lists/list.ts'
import { addListOptions, type ListOptions } from '../lists/options.ts'
import { printList } from '../lists/print-list.ts'
import { getStateColor } from '../output/colors.ts'
import { formatAge } from '../output/format.ts'
import { listProcesses } from '../processes/list-processes.ts'
import {
  formatCommand,
  formatExit,
  getProcessStatus,
  PROCESS_STATUSES,
} from '../processes/process-messages.ts'

const createProcessList = (boxName: string): List<ProcessFields> => ({
  columns: [
    { header: 'ID', cell: ({ processId }) => processId },
    { header: 'PID', cell: ({ pid }) => (pid === 0 ? '-' : String(pid)) },
    {
      header: 'STATE',
      cell: (process) => {
        const status = getProcessStatus(process)
        return { text: formatExit(status, process), color: getStateColor(status) }
      },
    },
    {
      header: 'STARTED',
      cell: ({ startedAt }, now) => `${formatAge(startedAt, now)} ago`,
      isRelativeTime: true,
    },
    { header: 'STARTED AT', cell: ({ startedAt }) => startedAt, isWide: true },
    { header: 'MODE', cell: ({ attached }) => (attached ? 'attached' : 'detached'), isWide: true },
    { header: 'COMMAND', cell: ({ command }) => formatCommand(command) },
  ],
  getId: ({ processId }) => processId,
  getName: ({ processId }) => processId,
  filters: FILTERS,
  getEmptyMessage: (isFiltered) =>
    isFiltered
      ? `No matching processes on ${boxName}.`
      : `No detached processes on ${boxName}. Start one with \`${boxCommand()} exec -d ${boxName} -- COMMAND\`.`,
})

const FILTERS: List<ProcessFields>['filters'] = {
  state: { get: getProcessStatus, values: PROCESS_STATUSES },
  command: { get: ({ command }) => command },
}

export function addPsCommand(program: Command, runAction: RunAction): void {
  addListOptions(
    program
      .command('ps')
      .summary('list the detached processes of a box')
      .description(
        'Lists the processes that `box exec -d` started, newest first, including those that have exited. The exit status ' +
          'of a lost process is unknown: its box stopped or restarted while it was running. While the box is not running, the ' +
          'list is from the command history.',
      )
      .argument('<name>', "the box's name or id"),
    'the ids',
    FILTERS,
  )
    .addHelpText(
      'after',
      `
Examples:
  box ps fig
  box ps fig --watch
  box ps fig --filter command=make
  box ps fig -q --filter state=running | xargs -r box kill fig

\`box top\` shows all processes of a box, \`box ps-at\` those of a past moment.`,
    )
    .action((name: string, options: ListOptions) =>
      runAction(async ({ client, signal }) => {
        const edge = await client.createEdgeClient(name)
        const load = async () => {
          const { isStored, ...list } = await listProcesses(client, edge)
          return {
            rows: list.processes,
            toJson: (processes: readonly ProcessFields[]) => ({ ...list, processes }),
            note: isStored
              ? `${edge.boxName} is not running. These processes are from the command history.`
              : null,
          }
        }
        return printList(createProcessList(edge.boxName), load, options, signal)
      }),
    )
}
