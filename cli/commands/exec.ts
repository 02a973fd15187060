// box exec: runs a command on a box with live output and stdin, and exits with its code.
import { type Command, Option } from 'commander'
import { LIMITS } from '../../shared/limits.ts'
import { parseCommandWords } from '../exec/command-words.ts'
import { type ExecOptions, toExecRequest } from '../exec/request.ts'
import { runAttached } from '../exec/run-attached.ts'
import { runInTerminal } from '../exec/run-in-terminal.ts'
import { runSync } from '../exec/run-sync.ts'
import { startDetached } from '../exec/start-detached.ts'
import { createIntegerParser, createJsonOption, createNumberParser, parseEnvOption } from '../options.ts'
import type { RunAction, Session } from '../session.ts'

export function addExecCommand(program: Command, runAction: RunAction): void {
  program
    .command('exec')
    .summary('run a command on a box')
    .description(
      'Runs a command on a box as the box user and exits with its code. Output appears as it is written, byte for byte. ' +
        'stdin is forwarded when it is not a terminal. Wakes a suspended box. With -d the command runs in the ' +
        'background and its id is printed.',
    )
    .argument('<name>', "the box's name or id")
    .argument('<command...>', 'one argument: a shell command line; several: each is quoted for the shell')
    .usage('[options] <name> [--] <command...>')
    .passThroughOptions()
    .option('-d, --detach', 'run the command in the background')
    .option('-i, --interactive', 'forward stdin also when it is a terminal')
    .option('-t, --tty', 'run the command in a terminal, as box ssh does; stdin must be a terminal')
    .option('-n, --no-stdin', 'do not forward stdin')
    .option(
      '-w, --cwd <directory>',
      'working directory: absolute, or relative to the home directory (default)',
    )
    .addOption(new Option('--workdir <directory>').hideHelp())
    .option('-e, --env <K=V>', 'set an environment variable; can be repeated', parseEnvOption)
    .option(
      '--timeout <seconds>',
      'kill the command after this time, 1 to 600 (default: none; with --json: 30)',
      createNumberParser('--timeout', LIMITS.execTimeoutSeconds),
    )
    .option(
      '--disconnect-timeout <seconds>',
      `kill the command when this client has been disconnected for this time, 1 to 3600 (default: ${LIMITS.disconnectTimeoutSeconds.default})`,
      createIntegerParser('--disconnect-timeout', LIMITS.disconnectTimeoutSeconds),
    )
    .addOption(createJsonOption('print the result as JSON when the command has exited; forwards no stdin'))
    .addHelpText(
      'after',
      `
Examples:
  box exec fig make test
  box exec fig ls -la
  box exec fig -- 'cd src && ls *.c | wc -l'          one argument: a shell command line
  box exec fig -- printf '%s\\n' 'two words'           several arguments: no expansion on the box
  tar c src | box exec fig -- tar x
  box exec fig -- tar c src | tar x
  box exec -it fig -- vim notes.md
  box exec -w src -e CC=clang --timeout 600 fig make
  box exec --json fig date | jq -r .stdout
  ID=$(box exec -d fig make world) && box logs -f fig $ID

Options of box exec stand before the name; everything after the name is the command. Options may also follow the name
when -- stands between them and the command: box exec fig -w src -- make.

A lost connection or a coordinator restart does not affect the command: box reconnects, and no byte is lost or repeated.
Ctrl-C terminates the command. Ctrl-\\ detaches: the command continues in the background, as with -d.
In a shell loop that reads stdin (while read), use -n, as with ssh.
--json runs the command without live output and prints the last 1 MiB of stdout and of stderr.

Exit codes:
  the command's own, or 128 + n if signal n killed it; with -d 0 once it has started; 0 after Ctrl-\\
  124  the command timed out (reported on stderr)
  125  box exec itself failed: wrong usage, no such box, coordinator or box unreachable
  126  127  from the shell on the box: not executable, not found
  130  Ctrl-C; it also kills the command on the box, unless detached
  141  the reader of stdout closed the pipe; it also kills the command`,
    )
    .action((name: string, words: string[], _: ExecOptions, command: Command) => {
      const args = parseCommandWords(command, name, words)
      const options = command.opts<ExecOptions>()
      return runAction((session) => selectMode(options)(session, name, toExecRequest(args, options), options))
    })
}

type Run = (
  session: Session,
  name: string,
  request: ReturnType<typeof toExecRequest>,
  options: ExecOptions,
) => Promise<number>

function selectMode({ tty, detach, json }: ExecOptions): Run {
  if (tty) return runInTerminal
  if (detach) return startDetached
  return json ? runSync : runAttached
}
