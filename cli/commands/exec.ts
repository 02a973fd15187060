// box exec: runs a command on a box with live output and stdin, and exits with its code.
import { type Command, CommanderError } from 'commander'
import { parseEnvOption } from '../arguments/options.ts'
import { addSelectionOptions, getSelectionOption, type SelectionOptions } from '../boxes/select-boxes.ts'
import { boxCommand } from '../command-name.ts'
import type { RunAction } from '../connection/session.ts'
import { parseCommandWords } from '../exec/command-words.ts'
import { addExecOptions } from '../exec/options.ts'
import type { ExecOptions } from '../exec/request.ts'
import { checkExecOptions, runCommand } from '../exec/run-command.ts'
import { CliError, EXIT } from '../output/exit-codes.ts'

export function addExecCommand(program: Command, runAction: RunAction): void {
  const command = program
    .command('exec')
    .summary('run a command on a box')
    .description(
      'Runs a command on a box as the box user and exits with its code. Output appears as it is written, byte for byte. ' +
        'stdin is forwarded when it is not a terminal. Wakes a suspended box. With -d the command runs in the ' +
        'background, and box exec prints its id.',
    )
    .argument('[name]', "the box's name or id; omitted with --all and --label")
    .argument('[command...]', 'one argument: a shell command line; several: each is quoted for the shell')
    .usage(
      '[options] <name> [--] <command...>\n       box exec [options] --all|--label <key[=value]> -- <command...>',
    )
    .passThroughOptions()

  addSelectionOptions(addExecOptions(command), 'run the command on', 'running boxes')
    .option('-e, --env <name=value>', 'set an environment variable; can be repeated', parseEnvOption)
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
  box exec --all -- uptime
  box exec --label team=web --label stage -- git pull
  ID=$(box exec -d fig make world) && box logs -f fig $ID

Options of box exec stand before the name; everything after the name is the command. Options may also follow the name
when -- stands between them and the command: box exec fig -w src -- make.

A lost connection or a coordinator restart does not affect the command: box reconnects, and no byte is lost or repeated.
Ctrl-C terminates the command. Ctrl-\\ detaches: the command continues in the background, as with -d.
In a shell loop that reads stdin (while read), use -n, as with ssh.
--json runs the command without live output and prints the last 1 MiB of stdout and of stderr.

--all and --label run the command on all running boxes, or on those with the label, eight at the same time. Each line of output
starts with the name of its box. Nothing is forwarded to stdin. The exit code is the highest one, and stderr names each box
whose command failed. With --json, each line is the result of one box.

Exit codes:
  N    that of the command, or 128 + n if signal n killed it
  0    with -d: the command has started; without -d also after Ctrl-\\
  124  the command timed out (reported on stderr)
  125  box exec itself failed: wrong usage, no such box, cannot reach the coordinator or the box
  126  from the shell on the box: the command is not executable
  127  from the shell on the box: the command was not found
  130  Ctrl-C, which also terminates the command
  141  the reader of stdout closed the pipe, which also terminates the command`,
    )
    .action((name: string | undefined, words: string[]) => {
      const options = command.opts<ExecOptions & SelectionOptions>()
      const selected = getSelectionOption(options) === null ? null : parseSelectedWords(options, name, words)
      if (selected !== null) return execSelected(selected, options)
      if (name === undefined || words.length === 0)
        throw missingArgumentError(name === undefined ? 'name' : 'command')
      const args = parseCommandWords(command, name, words)
      const allOptions = command.opts<ExecOptions & SelectionOptions>()
      const option = getSelectionOption(allOptions)
      if (option !== null) throw namedBoxError(option)
      checkExecOptions(allOptions)
      return runAction(async (session) => (await runCommand(session, name, args, allOptions)).exitCode)
    })

  function execSelected(args: string[], options: ExecOptions & SelectionOptions): Promise<void> {
    checkBoxesOptions(options)
    return runAction(async (session) => {
      // Imported here: a command on one box does not need it.
      const { execOnBoxes } = await import('../boxes/exec-on-boxes.ts')
      return execOnBoxes(session, args, options)
    })
  }
}

/** @throws CliError for options that several boxes do not allow */
function checkBoxesOptions(options: ExecOptions & SelectionOptions): void {
  const option = getSelectionOption(options)
  for (const [name, isSet] of [
    ['-t', options.tty],
    ['-i', options.interactive],
    ['-d', options.detach],
  ] as const)
    if (isSet) throw new CliError(EXIT.usage, `${name} cannot be combined with ${option}.`)
}

/** The words of the command. @throws CliError without a command, and for the name of a box before `--` */
function parseSelectedWords(
  options: SelectionOptions,
  first: string | undefined,
  others: readonly string[],
): string[] {
  const option = getSelectionOption(options)
  if (first === undefined)
    throw new CliError(
      EXIT.usage,
      `The command is missing. Example: ${boxCommand()} exec ${option === '--all' ? '--all' : '--label KEY'} -- uname -a`,
    )
  if (others[0] === '--') throw namedBoxError(option)
  return [first, ...others]
}

const namedBoxError = (option: string | null): CliError =>
  new CliError(EXIT.usage, `${option} cannot be combined with the name of a box.`)

/** The error of commander for an argument that is not optional. */
const missingArgumentError = (name: string): CommanderError =>
  new CommanderError(1, 'commander.missingArgument', `error: missing required argument '${name}'`)
