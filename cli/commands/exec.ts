// box exec: runs a command on a box with live output and stdin, and exits with its code.
import type { Command } from 'commander'
import { parseEnvOption } from '../arguments/options.ts'
import type { RunAction } from '../connection/session.ts'
import { parseCommandWords } from '../exec/command-words.ts'
import { addExecOptions } from '../exec/options.ts'
import type { ExecOptions } from '../exec/request.ts'
import { checkExecOptions, runCommand } from '../exec/run-command.ts'

export function addExecCommand(program: Command, runAction: RunAction): void {
  const command = program
    .command('exec')
    .summary('run a command on a box')
    .description(
      'Runs a command on a box as the box user and exits with its code. Output appears as it is written, byte for byte. ' +
        'stdin is forwarded when it is not a terminal. Wakes a suspended box. With -d the command runs in the ' +
        'background, and box exec prints its id.',
    )
    .argument('<name>', "the box's name or id")
    .argument('<command...>', 'one argument: a shell command line; several: each is quoted for the shell')
    .usage('[options] <name> [--] <command...>')
    .passThroughOptions()

  addExecOptions(command)
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
  ID=$(box exec -d fig make world) && box logs -f fig $ID

Options of box exec stand before the name; everything after the name is the command. Options may also follow the name
when -- stands between them and the command: box exec fig -w src -- make.

A lost connection or a coordinator restart does not affect the command: box reconnects, and no byte is lost or repeated.
Ctrl-C terminates the command. Ctrl-\\ detaches: the command continues in the background, as with -d.
In a shell loop that reads stdin (while read), use -n, as with ssh.
--json runs the command without live output and prints the last 1 MiB of stdout and of stderr.

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
    .action((name: string, words: string[]) => {
      const args = parseCommandWords(command, name, words)
      const options = command.opts<ExecOptions>()
      checkExecOptions(options)
      return runAction(async (session) => (await runCommand(session, name, args, options)).exitCode)
    })
}
