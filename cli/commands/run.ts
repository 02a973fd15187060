// box run: creates a box and runs a command in it.
import type { Command } from 'commander'
import type { Box } from '../../shared/api/boxes.ts'
import { IMAGE_OPTION } from '../arguments/usage-hints.ts'
import { addCreateOptions, type CreateOptions } from '../boxes/create-box.ts'
import { createBoxUninterrupted, deleteTemporaryBox } from '../boxes/temporary-box.ts'
import { boxCommand } from '../command-name.ts'
import type { RunAction, Session } from '../connection/session.ts'
import { addExecOptions } from '../exec/options.ts'
import type { ExecOptions } from '../exec/request.ts'
import { checkExecOptions, runCommand } from '../exec/run-command.ts'
import { CliError, type CommandResult, EXIT } from '../output/exit-codes.ts'
import { printMessage, sanitize } from '../output/print.ts'
import { waitForState } from '../wait/wait-for-box.ts'

/** `env` belongs to the box, and so to its commands. */
type Options = Omit<ExecOptions, 'env'> & CreateOptions & { rm?: boolean }

export function addRunCommand(program: Command, runAction: RunAction): void {
  const command = program
    .command('run')
    .summary('create a box and run a command in it')
    .description(
      'Creates a box, runs a command in it as `box exec` does, and exits with the code of the command. The box stays, and its name is ' +
        'printed on stderr. With --rm the box is deleted at the end, also after Ctrl-C.',
    )
    .argument('<command...>', 'one argument: a shell command line; several: each is quoted for the shell')
    .usage('[options] -- <command...>')
    .option('--rm', 'delete the box with its files at the end')
  addExecOptions(command)
    .optionsGroup('Options of the box:')
    .option('--name <name>', 'name of the box (default: a fruit name)')
  addCreateOptions(command)
    .addHelpText(
      'after',
      `
Examples:
  box run --rm -- uname -a
  box run --rm -it -- bash
  box run --rm --image python:3.13 -- python -V
  tar c src | box run --rm -- 'tar x && make -C src test'
  box run --name fig --tier pro -e CC=clang -- ./build.sh
  box run -d --name fig -- make world          prints the id of the process

With --rm, a box whose command continues after Ctrl-\\ or ~d is not deleted. The exit codes are those
of \`box exec\`.`,
    )
    .action((args: string[]) => {
      const options = command.opts<Options>()
      requireSeparator(args, process.argv.slice(2))
      checkOptions(options)
      return runAction((session) => createAndRun(session, args, options))
    })
}

/** The name of an image of a container: with a tag or a path, or of a distribution. */
const IMAGE = /^[\w.-]+[:/]|^(alpine|archlinux|busybox|centos|debian|fedora|node|python|rockylinux|ubuntu)$/

/** `box run fig` would create a box to run a program named fig. @param argv all arguments of box */
function requireSeparator(args: readonly string[], argv: readonly string[]): void {
  const separator = argv.indexOf('--')
  if (separator >= 0 && argv.length - separator - 1 === args.length) return
  if (IMAGE.test(args[0] ?? '')) throw new CliError(EXIT.usage, IMAGE_OPTION)
  const first = sanitize(args[0] ?? '')
  const box = boxCommand()
  throw new CliError(
    EXIT.usage,
    `box run creates a box. Write \`--\` before the command: ${box} run -- COMMAND\n` +
      `To run a command on the box ${first}: ${box} exec ${first} COMMAND. To start the box: ${box} start ${first}`,
  )
}

function checkOptions(options: Options): void {
  checkExecOptions(options)
  if (options.rm && options.detach)
    throw new CliError(EXIT.usage, '--rm cannot be combined with -d: the box would be deleted immediately.')
}

async function createAndRun(session: Session, args: string[], options: Options): Promise<number> {
  const box = await createBoxUninterrupted(session, options)
  let result: CommandResult | null = null
  let cleanup: Promise<void> | undefined
  const cleanUp = () => {
    cleanup ??= deleteOrNameBox(session, box, options.rm === true && !result?.continues)
    return cleanup
  }
  const removeClosedPipeHandler = session.onClosedPipe(cleanUp)
  try {
    session.signal.throwIfAborted()
    await waitForState(session, box, 'running', options.json ? 'none' : 'terminal', {
      isTemporary: options.rm === true,
    })
    const { env: _, ...execOptions } = options
    result = await runCommand(session, box.hostname, args, execOptions)
    return result.exitCode
  } finally {
    await cleanUp()
    removeClosedPipeHandler()
  }
}

async function deleteOrNameBox(session: Session, box: Box, isDeleted: boolean): Promise<void> {
  if (isDeleted) return deleteTemporaryBox(session, box)
  printMessage(`the box ${box.hostname} stays. Delete it with \`${boxCommand()} rm ${box.hostname}\`.`)
}
