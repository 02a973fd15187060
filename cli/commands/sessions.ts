// box sessions: lists the terminal sessions of a box, or terminates one.
import { type Command, Option } from 'commander'
import type { TerminalKilled, TerminalSession } from '../../shared/api/terminal.ts'
import type { JsonOption } from '../arguments/options.ts'
import { boxCommand } from '../command-name.ts'
import type { RunAction, Session } from '../connection/session.ts'
import type { List } from '../lists/list.ts'
import { addListOptions, type ListOptions } from '../lists/options.ts'
import { printList } from '../lists/print-list.ts'
import { formatAge } from '../output/format.ts'
import { printJson, printStderr } from '../output/print.ts'
import { noSuchSessionMessage, replaceNotFoundMessage } from '../processes/process-messages.ts'
import { listSessions } from '../terminal/create-session.ts'
import { findSessionName } from '../terminal/find-session.ts'

type Options = ListOptions & { kill?: string }

const LOGIN_SHELL = '(login shell)'

const FILTERS: List<TerminalSession>['filters'] = {
  name: { get: ({ session }) => session },
  command: { get: ({ command }) => command ?? LOGIN_SHELL },
}

const createSessionList = (boxName: string): List<TerminalSession> => ({
  columns: [
    { header: 'SESSION', cell: ({ session }) => session },
    { header: 'PID', cell: ({ pid }) => String(pid) },
    { header: 'SIZE', cell: ({ cols, rows }) => `${cols}x${rows}` },
    { header: 'CLIENTS', cell: ({ clients }) => String(clients) },
    {
      header: 'STARTED',
      cell: ({ startedAt }, now) => `${formatAge(startedAt, now)} ago`,
      isRelativeTime: true,
    },
    {
      header: 'ACTIVE',
      cell: ({ lastActiveAt }, now) => `${formatAge(lastActiveAt, now)} ago`,
      isRelativeTime: true,
    },
    { header: 'STARTED AT', cell: ({ startedAt }) => startedAt, isWide: true },
    { header: 'COMMAND', cell: ({ command }) => command ?? LOGIN_SHELL },
  ],
  getId: ({ session, startedAt }) => `${session} ${startedAt}`,
  getName: ({ session }) => session,
  filters: FILTERS,
  getEmptyMessage: (isFiltered) =>
    isFiltered
      ? `No matching terminal sessions on ${boxName}.`
      : `No terminal sessions on ${boxName}. Start one with \`${boxCommand()} ssh ${boxName}\`.`,
})

export function addSessionsCommand(program: Command, runAction: RunAction): void {
  addListOptions(
    program
      .command('sessions')
      .summary('list or terminate the terminal sessions of a box')
      .description(
        'Lists the terminal sessions of a box that `box ssh` and `box exec -it` started, newest first.',
      )
      .argument('<name>', "the box's name or id")
      .addOption(
        new Option(
          '--kill <session>',
          'terminate the processes of a session, given by its name or its first characters',
        ).conflicts(['filter', 'output', 'watch']),
      ),
    'the names',
    FILTERS,
  )
    .addHelpText(
      'after',
      `
Examples:
  box sessions fig
  box sessions fig --watch
  box sessions fig --kill work`,
    )
    .action((name: string, options: Options) =>
      runAction((session) =>
        options.kill === undefined
          ? printSessions(session, name, options)
          : killSession(session, name, options.kill, options),
      ),
    )
}

async function printSessions(
  { client, signal }: Session,
  name: string,
  options: ListOptions,
): Promise<number> {
  const edge = await client.createEdgeClient(name)
  const load = async () => {
    const list = await listSessions(edge)
    return {
      rows: list.sessions,
      toJson: (sessions: readonly TerminalSession[]) => ({ ...list, sessions }),
    }
  }
  return printList(createSessionList(edge.boxName), load, options, signal)
}

async function killSession(
  { client }: Session,
  name: string,
  typed: string,
  { json }: JsonOption,
): Promise<undefined> {
  const edge = await client.createEdgeClient(name)
  const session = await findSessionName(edge, typed)
  const killed = await replaceNotFoundMessage(
    edge.requestJson<TerminalKilled>('DELETE', `/terminal/sessions/${encodeURIComponent(session)}`),
    noSuchSessionMessage(name, session),
  )
  if (json) printJson(killed)
  else
    printStderr(
      `${session}: ${killed.signal === null ? 'already exited' : `terminated (SIG${killed.signal})`}`,
    )
}
