// box sessions: lists the terminal sessions of a box, or ends one.
import type { Command } from 'commander'
import type { TerminalKilled, TerminalSession } from '../../shared/api/terminal.ts'
import { createJsonOption, type JsonOption } from '../options.ts'
import { formatAge, formatTable, getTerminalWidth, print, printJson, printStderr } from '../output.ts'
import { noSuchSessionMessage, replaceNotFoundMessage } from '../process-messages.ts'
import type { RunAction, Session } from '../session.ts'
import { listSessions } from '../terminal/create-session.ts'

type Options = JsonOption & { kill?: string }

export function addSessionsCommand(program: Command, runAction: RunAction): void {
  program
    .command('sessions')
    .summary('list or end the terminal sessions of a box')
    .description(
      'Lists the terminal sessions of a box that `box ssh` and `box exec -it` started, newest first.',
    )
    .argument('<name>', "the box's name or id")
    .option('--kill <session>', 'end a session: terminate its processes')
    .addOption(createJsonOption())
    .addHelpText(
      'after',
      `
Examples:
  box sessions fig
  box sessions fig --kill work
  box sessions fig --json | jq -r '.sessions[].session'`,
    )
    .action((name: string, options: Options) =>
      runAction((session) =>
        options.kill === undefined
          ? printSessions(session, name, options)
          : killSession(session, name, options.kill, options),
      ),
    )
}

async function printSessions({ client }: Session, name: string, { json }: JsonOption): Promise<undefined> {
  const list = await listSessions(await client.createEdgeClient(name))
  if (json) printJson(list)
  else if (list.sessions.length > 0) print(formatSessions(list.sessions, Date.now()))
  else printStderr(`No terminal sessions on ${name}. Start one with \`box ssh ${name}\`.`)
}

async function killSession(
  { client }: Session,
  name: string,
  session: string,
  { json }: JsonOption,
): Promise<undefined> {
  const edge = await client.createEdgeClient(name)
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

const TABLE_HEADER = ['SESSION', 'PID', 'SIZE', 'CLIENTS', 'STARTED', 'ACTIVE', 'COMMAND']

const formatSessions = (sessions: readonly TerminalSession[], now: number): string =>
  formatTable(
    [
      TABLE_HEADER,
      ...sessions.map(({ session, pid, cols, rows, clients, startedAt, lastActiveAt, command }) => [
        session,
        String(pid),
        `${cols}x${rows}`,
        String(clients),
        `${formatAge(startedAt, now)} ago`,
        `${formatAge(lastActiveAt, now)} ago`,
        command ?? '(login shell)',
      ]),
    ],
    getTerminalWidth(),
  )
