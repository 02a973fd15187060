// Entry point of the `box` command: registers the commands, handles signals, sets the exit code.
import { constants } from 'node:os'
import { Command, CommanderError } from 'commander'
import { addCp } from './commands/cp.ts'
import { addCreate } from './commands/create.ts'
import { addExec } from './commands/exec.ts'
import { addHistory } from './commands/history.ts'
import { addKill } from './commands/kill.ts'
import { addLogs } from './commands/logs.ts'
import { addLs } from './commands/ls.ts'
import { addMe } from './commands/me.ts'
import { addOutput } from './commands/output.ts'
import { addPs } from './commands/ps.ts'
import { addRm } from './commands/rm.ts'
import { addShow } from './commands/show.ts'
import { addSuspend } from './commands/suspend.ts'
import { addWake } from './commands/wake.ts'
import { CliError, EXIT, EXIT_CODE_HELP, signalExitCode } from './exit-codes.ts'
import { printMessage } from './output.ts'
import { openSession, type RunAction } from './session.ts'
import { CLI_VERSION } from './version.ts'

const HELP = `
Getting started:
  box create --name fig
  box exec fig -- uname -a
  box exec -d fig -- make world  runs in the background; prints its id
  box logs -f fig ID             follows its output and reconnects when needed
  box cp src fig:                copies a directory to the box's home directory
  box cp fig:src/out.log .
  box suspend fig                stops the box: files stay, processes end
  box rm fig

Set BOXWOOD_URL (such as http://127.0.0.1:7070/api/v1) and BOXWOOD_API_KEY to choose a coordinator. Without them, box
uses the coordinator of a data directory on this machine: BOXWOOD_DATA, else .boxwood in the current directory, else
.boxwood in the project that contains this command.
${EXIT_CODE_HELP}`

const interrupted = new AbortController()
/** Set once a signal has arrived. */
let signalCode: number | null = null
/** Time for pending output after a signal. */
const EXIT_GRACE_MS = 500

for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
  // `once`: a second signal has its default action and ends the process.
  process.once(signal, () => {
    signalCode = signalExitCode(constants.signals[signal])
    interrupted.abort(new CliError(signalCode, ''))
  })
}

// `box exec … | head` closes our stdout: exit as on SIGPIPE, without a stack trace.
for (const stream of [process.stdout, process.stderr])
  stream.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code !== 'EPIPE') throw error
    process.exit(signalExitCode(constants.signals.SIGPIPE))
  })

const runAction: RunAction = async (action) => {
  process.exitCode = (await action(openSession(interrupted.signal))) ?? EXIT.ok
}

// Subcommands inherit these settings when they are added.
const program = new Command('box')
  .description('Boxes: Linux machines for people and coding agents.')
  .version(CLI_VERSION, '-V, --version', 'show the version')
  .helpOption('-h, --help', 'show help')
  .helpCommand('help [command]', 'show help for a command')
  .configureOutput({ outputError: (text, write) => write(text.replace(/^error: /, 'box: ')) })
  .showHelpAfterError("See 'box --help'.")
  .addHelpText('after', HELP)
  .exitOverride()
const commands = [
  [addCreate, addLs, addShow],
  [addExec, addPs, addLogs, addKill, addHistory, addOutput],
  [addCp, addSuspend, addWake, addRm, addMe],
]
for (const add of commands.flat()) add(program, runAction)
for (const command of program.commands) command.showHelpAfterError(`See 'box ${command.name()} --help'.`)

try {
  await program.parseAsync()
} catch (error) {
  process.exitCode = reportError(error)
}

// After a signal, exit even if the reader of stdout has stopped reading.
if (signalCode !== null) setTimeout(() => process.exit(), EXIT_GRACE_MS).unref()

/** Whether the exit code on success is the command's own: then our own failures exit with 125. */
function returnsCommandExitCode([name, ...args]: string[]): boolean {
  return name === 'exec' || (name === 'logs' && args.some((arg) => arg === '-f' || arg === '--follow'))
}

/** Prints the error, unless commander has printed it, and returns the exit code. */
function reportError(error: unknown): number {
  const isExec = returnsCommandExitCode(process.argv.slice(2))
  if (signalCode !== null) return signalCode
  if (error instanceof CommanderError) {
    if (error.exitCode === 0) return EXIT.ok
    return isExec ? EXIT.execFailed : EXIT.usage
  }
  if (!(error instanceof CliError)) {
    // A bug in this command: print the stack for the bug report.
    printMessage(error instanceof Error ? (error.stack ?? error.message) : String(error))
    return isExec ? EXIT.execFailed : EXIT.failed
  }
  printMessage(error.message)
  return isExec ? EXIT.execFailed : error.exitCode
}
