// Entry point of the `box` command: parses the arguments, handles signals, sets the exit code.
import { constants } from 'node:os'
import { listNeededCommands, parseCommandLine } from './arguments/command-line.ts'
import { getFailureExitCode, reportError } from './arguments/report-error.ts'
import { openSession, type RunAction, type RunLocalAction, type Session } from './connection/session.ts'
import { CliError, EXIT, signalExitCode } from './output/exit-codes.ts'
import { handleOutputErrors } from './output/output-errors.ts'
import { selectErrorFormat } from './output/print-error.ts'
import { createProgram } from './program.ts'
import { isCommandName } from './register-commands.ts'

const interruptController = new AbortController()
/** The exit code after a signal, or when stdout or stderr cannot be written; else null. */
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

const { args, words } = parseCommandLine(process.argv.slice(2), isCommandName)

function exitAfterOutputError(exitCode: number): void {
  interruptExitCode ??= exitCode
  const cleanups = [...closedPipeCleanups].map((cleanup) => cleanup())
  void Promise.all(cleanups).finally(() => process.exit(interruptExitCode ?? EXIT.ok))
}
handleOutputErrors({
  // As on SIGPIPE.
  onClosedPipe: () => exitAfterOutputError(signalExitCode(constants.signals.SIGPIPE)),
  onFailure: () => exitAfterOutputError(getFailureExitCode(words) ?? EXIT.failed),
})

const runAction: RunAction = async (action) => {
  process.exitCode =
    (await action(openSession(interruptController.signal, { onClosedPipe, onInterrupt }))) ?? EXIT.ok
}

const runLocalAction: RunLocalAction = async (action) => {
  process.exitCode = (await action(interruptController.signal)) ?? EXIT.ok
}

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
