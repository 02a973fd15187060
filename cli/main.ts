// Entry point of the `box` command: parses the arguments, handles signals, sets the exit code.
import { constants } from 'node:os'
import { Command, Help, Option } from 'commander'
import { parseCommandLine } from './command-line.ts'
import { formatPathNote } from './command-name.ts'
import { CliError, EXIT, EXIT_CODE_HELP, signalExitCode } from './exit-codes.ts'
import { print } from './output.ts'
import { selectErrorFormat } from './print-error.ts'
import { IS_NPM_PACKAGE } from './project-directory.ts'
import { registerCommands } from './register-commands.ts'
import { reportError } from './report-error.ts'
import { openSession, type RunAction, type RunLocalAction, type Session } from './session.ts'
import { enableTrace } from './trace.ts'
import { CLI_VERSION } from './version.ts'
import { wrapHelp } from './wrap-help.ts'

const HELP = `
Getting started:
  box up                         starts the coordinator in the background; box down stops it and the boxes
  box create fig
  box exec fig uname -a
  box exec -d fig make world     runs in the background; prints the id
  box ssh fig                    opens a terminal, which survives disconnects
  box logs -f fig ID             follows the output and reconnects when needed
  box cp src fig:                copies a directory to the box's home directory
  box cp fig:src/out.log .
  box stop fig                   keeps the files; box start fig starts the box again
  box rm fig
  box run --rm -- make test      runs a command in a new box, then deletes the box

Set BOXWOOD_URL (such as http://127.0.0.1:7070) and BOXWOOD_API_KEY to choose a coordinator. Without them, box
uses the coordinator of a data directory on this machine: BOXWOOD_DATA, else .boxwood in the current directory, else
.boxwood in ${IS_NPM_PACKAGE ? 'your home directory' : 'the project that contains this command'}.
${EXIT_CODE_HELP}`

const interruptController = new AbortController()
/** The exit code after a signal, or when the reader of stdout has closed the pipe; else null. */
let interruptExitCode: number | null = null
/** The width of help pages when stdout is not a terminal. */
const DEFAULT_COLUMNS = 80
/** Time to write pending output after a signal. */
const EXIT_GRACE_MS = 500

for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
  // `once`: the default action of a second signal terminates the process.
  process.once(signal, () => {
    interruptExitCode = signalExitCode(constants.signals[signal])
    interruptController.abort(new CliError(interruptExitCode, ''))
  })
}

const closedPipeCleanups = new Set<() => Promise<void>>()
const onClosedPipe: Session['onClosedPipe'] = (cleanup) => {
  closedPipeCleanups.add(cleanup)
  return () => void closedPipeCleanups.delete(cleanup)
}

// The reader may close the pipe, as in `box exec … | head`: exit as on SIGPIPE, without a stack trace.
for (const stream of [process.stdout, process.stderr])
  stream.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code !== 'EPIPE') throw error
    interruptExitCode ??= signalExitCode(constants.signals.SIGPIPE)
    const cleanups = [...closedPipeCleanups].map((cleanup) => cleanup())
    void Promise.all(cleanups).finally(() => process.exit(interruptExitCode ?? EXIT.ok))
  })

const runAction: RunAction = async (action) => {
  process.exitCode = (await action(openSession(interruptController.signal, onClosedPipe))) ?? EXIT.ok
}

const runLocalAction: RunLocalAction = async (action) => {
  process.exitCode = (await action(interruptController.signal)) ?? EXIT.ok
}

// Subcommands copy the settings of help, output and exit when they are added: set these first.
const program = new Command('box')
  .description('Boxes: Linux machines for people and coding agents.')
  .version(
    CLI_VERSION,
    '-v, --version',
    'show the version of box; box version also shows that of the coordinator',
  )
  .addOption(new Option('-V').hideHelp())
  .on('option:V', () => {
    print(CLI_VERSION)
    process.exit()
  })
  .helpOption('-h, --help', 'show help')
  // report-error.ts prints the errors.
  .configureOutput({
    outputError: () => undefined,
    writeOut: (text) => process.stdout.write(wrapHelp(text, process.stdout.columns ?? DEFAULT_COLUMNS)),
  })
  // Every command has options.
  .configureHelp({
    subcommandTerm: (command) => Help.prototype.subcommandTerm(command).replace(' [options]', ''),
  })
  .addHelpText('after', HELP)
  .addHelpText('afterAll', formatPathNote)
  .enablePositionalOptions()
  .exitOverride()
registerCommands(program, runAction, runLocalAction)
program.option('--verbose', 'print each request on stderr').on('option:verbose', enableTrace)
for (const command of program.commands)
  command.addOption(new Option('--verbose').hideHelp()).on('option:verbose', enableTrace)

const { args, words } = parseCommandLine(program, process.argv.slice(2))
selectErrorFormat(program, words)

try {
  await program.parseAsync(args, { from: 'user' })
} catch (error) {
  process.exitCode = interruptExitCode ?? reportError(error, program, words)
}

// After a signal, exit even if the reader of stdout has stopped reading.
if (interruptExitCode !== null) setTimeout(() => process.exit(), EXIT_GRACE_MS).unref()
