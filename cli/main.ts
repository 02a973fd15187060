// The `box` command: which commands there are, how they end.
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
import { EXIT, EXIT_HELP, Failure, signalExit } from './exit-codes.ts'
import { say } from './output.ts'
import { openSession, type Run } from './session.ts'
import { CLI_VERSION } from './version.ts'

const HELP = `
A first minute:
  box create --name fig
  box exec fig -- uname -a
  box exec -d fig -- make world  goes on by itself; prints its id
  box logs -f fig ID             follows it, whatever breaks in between
  box cp src fig:                a folder into its home directory
  box cp fig:src/out.log .
  box suspend fig                processes end, files stay
  box rm fig

Where the coordinator is: BOXWOOD_URL (such as http://127.0.0.1:7070/api/v1) and BOXWOOD_API_KEY; else the
data folder of a coordinator on this machine: BOXWOOD_DATA, or .boxwood here, or .boxwood of the project that
this command is installed in.
${EXIT_HELP}`

const interrupted = new AbortController()
let endedBy: number | null = null
/** Milliseconds. */
const LAST_WORDS_MS = 500

for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
  // Once: a second one ends the process as it would without this.
  process.once(signal, () => {
    endedBy = signalExit(constants.signals[signal])
    interrupted.abort(new Failure(endedBy, ''))
  })
}

// `box exec … | head` reads no more: that ends it as it ends any program, without a stack trace.
for (const stream of [process.stdout, process.stderr])
  stream.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code !== 'EPIPE') throw error
    process.exit(signalExit(constants.signals.SIGPIPE))
  })

const run: Run = async (action) => {
  process.exitCode = (await action(openSession(interrupted.signal))) ?? EXIT.ok
}

const program = new Command('box')
  .description('Boxes: Linux machines for people and coding agents.')
  .version(CLI_VERSION, '-V, --version', "print this command's version")
  .helpOption('-h, --help', 'teach a command: box exec --help')
  .showHelpAfterError('(`--help` after the command shows how it is used)')
  .addHelpText('after', HELP)
  .exitOverride()
const commands = [
  [addCreate, addLs, addShow],
  [addExec, addPs, addLogs, addKill, addHistory, addOutput],
  [addCp, addSuspend, addWake, addRm, addMe],
]
for (const add of commands.flat()) add(program, run)

try {
  await program.parseAsync()
} catch (error) {
  process.exitCode = report(error)
}

// Whoever stopped it does not wait for a reader that does not read.
if (endedBy !== null) setTimeout(() => process.exit(), LAST_WORDS_MS).unref()

/** Whether the exit code is that of the command on the box, so that our own must be told apart from it. */
function endsAsCommand([name, ...words]: string[]): boolean {
  return name === 'exec' || (name === 'logs' && words.some((word) => word === '-f' || word === '--follow'))
}

/** Says what went wrong, if it is not said yet, and answers with the exit code. */
function report(error: unknown): number {
  const isExec = endsAsCommand(process.argv.slice(2))
  if (endedBy !== null) return endedBy
  if (error instanceof CommanderError) {
    if (error.exitCode === 0) return EXIT.ok
    return isExec ? EXIT.execFailed : EXIT.usage
  }
  if (!(error instanceof Failure)) {
    // A defect of this command: the whole of it, for a report.
    say(`box: ${error instanceof Error ? error.stack : String(error)}`)
    return isExec ? EXIT.execFailed : EXIT.refused
  }
  say(`box: ${error.message}`)
  return isExec ? EXIT.execFailed : error.exitCode
}
