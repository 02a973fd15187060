// box ssh: opens a terminal session on a box.
import { type Command, Option } from 'commander'
import { parseEnvOption } from '../arguments/options.ts'
import { boxCommand } from '../command-name.ts'
import type { RunAction, Session } from '../connection/session.ts'
import { CliError, EXIT } from '../output/exit-codes.ts'
import { toCommandLine } from '../output/format.ts'
import { printStderr } from '../output/print.ts'
import { createSession, createSessionUnlessExists, requireTerminal } from '../terminal/create-session.ts'
import { ESCAPE_HELP } from '../terminal/escape-keys.ts'

type Options = { session?: string; cwd?: string; workdir?: string; env?: Record<string, string> }

export function addSshCommand(program: Command, runAction: RunAction): void {
  program
    .command('ssh')
    .alias('shell')
    .summary('open a terminal on a box')
    .description(
      'Opens a terminal session with a login shell on a box, and prints the name of the session. The session ' +
        'continues when the connection is lost, and when the coordinator or this command exits: `box attach` shows it again. Wakes a suspended box.',
    )
    .argument('<name>', "the box's name or id")
    // With words after the name, openTerminal() names box exec.
    .allowExcessArguments()
    .option('-s, --session <session>', 'attach to the session of this name, or create it')
    .option('-w, --cwd <directory>', 'working directory of a new session')
    .addOption(new Option('--workdir <directory>').hideHelp())
    .option(
      '-e, --env <name=value>',
      'set an environment variable of a new session; can be repeated',
      parseEnvOption,
    )
    .addHelpText(
      'after',
      `
Examples:
  box ssh fig
  box ssh fig --session work        attaches to the session "work", or creates it
  box attach fig                    attaches to the newest session
  box sessions fig                  lists the sessions
  box exec -it fig -- vim notes.md  a terminal for one command
  box ssh-config fig                for ssh, scp, rsync, git and editors

${ESCAPE_HELP}

Exit codes:
  N    that of the shell, or 128 + n if signal n killed it
  0    detached with ~d
  255  disconnected with ~., or box ssh itself failed`,
    )
    .action((name: string, options: Options, { args }: Command) =>
      runAction((session) => openTerminal(session, name, args.slice(1), options)),
    )
}

async function openTerminal(
  session: Session,
  name: string,
  command: string[],
  { session: sessionName, workdir, cwd = workdir, env }: Options,
): Promise<number> {
  if (command.length > 0) {
    const line = toCommandLine(command)
    throw new CliError(
      EXIT.usage,
      `box ssh opens a shell. To run a command: ${boxCommand()} exec ${name} -- ${line} (with a terminal: exec -it).`,
    )
  }
  requireTerminal(`To run a command without a terminal: ${boxCommand()} exec ${name} -- COMMAND`)
  const edge = await session.client.createEdgeClient(name)
  const options = { ...(cwd !== undefined && { cwd }), ...(env !== undefined && { env }) }
  const created =
    sessionName === undefined
      ? await createSession(edge, options)
      : await createSessionUnlessExists(edge, { ...options, session: sessionName })
  if (created !== null) printStderr(`Session ${created.session} on ${name}. ~d detaches, ~? lists more keys.`)
  const { runTerminal } = await import('../terminal/run-terminal.ts')
  const { exitCode } = await runTerminal(session, edge, {
    session: created?.session ?? sessionName ?? null,
    start: created === null ? null : { stdout: 0, stderr: 0 },
  })
  return exitCode
}
