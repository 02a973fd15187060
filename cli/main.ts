// Entry point of the `box` command: parses the arguments, handles signals, sets the exit code.
import { constants } from 'node:os'
import { listNeededCommands, parseCommandLine } from './arguments/command-line.ts'
import { reportError } from './arguments/report-error.ts'
import { openSession, type RunAction, type RunLocalAction, type Session } from './connection/session.ts'
import { CliError, EXIT, signalExitCode } from './output/exit-codes.ts'
import { selectErrorFormat } from './output/print-error.ts'
import { createProgram } from './program.ts'
import { isCommandName } from './register-commands.ts'

const interruptController = new AbortController()
/** The exit code after a signal, or when the reader of stdout has closed the pipe; else null. */
let interruptExitCode: number | null = null
/** Time to write pending output after a signal. */
const EXIT_GRACE_MS = 500

let interruptHandler: (() => void) | null = null
const onInterrupt: Session['onInterrupt'] = (handler) => {
  interruptHandler = handler
  return () => {
    if (interruptHandler === handler) interruptHandler = null
  }
}

for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
  const onSignal = () => {
    if (signal === 'SIGINT' && interruptHandler !== null) return interruptHandler()
    // The default action of a second signal terminates the process.
    process.off(signal, onSignal)
    interruptExitCode = signalExitCode(constants.signals[signal])
    interruptController.abort(new CliError(interruptExitCode, ''))
  }
  process.on(signal, onSignal)
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
  process.exitCode =
    (await action(openSession(interruptController.signal, { onClosedPipe, onInterrupt }))) ?? EXIT.ok
}

const runLocalAction: RunLocalAction = async (action) => {
  process.exitCode = (await action(interruptController.signal)) ?? EXIT.ok
}

const { args, words } = parseCommandLine(process.argv.slice(2), isCommandName)
const neededCommands = listNeededCommands(words.length > 0 ? words : args, isCommandName)
const program = await createProgram({ runAction, runLocalAction }, neededCommands)
selectErrorFormat(program, words)

try {
  await program.parseAsync(args, { from: 'user' })
} catch (error) {
  process.exitCode = interruptExitCode ?? reportError(error, program, words)
}

// After a signal, exit even if the reader of stdout has stopped reading.
if (interruptExitCode !== null) setTimeout(() => process.exit(), EXIT_GRACE_MS).unref()
