// box exec: runs an attached command with live output and stdin. Ctrl-C terminates it, Ctrl-\ detaches from it.
import type { ExecRequest } from '../../shared/api/exec.ts'
import { LIMITS } from '../../shared/limits.ts'
import type { EdgeClient } from '../connection/client.ts'
import type { Session } from '../connection/session.ts'
import { CliError, type CommandResult, EXIT } from '../output/exit-codes.ts'
import { printMessage, printStderr } from '../output/print.ts'
import {
  formatDetachedHint,
  formatTimedOut,
  noSuchProcessMessage,
  replaceNotFoundMessage,
  toExitCode,
} from '../processes/process-messages.ts'
import { type AttachedCommand, startAttached, terminateCommand } from './attached-command.ts'
import { type ExecOptions, printIfInterrupted } from './request.ts'

/** Time for the output that remains when an interrupted command has exited. */
const OUTPUT_GRACE_MS = 5000

export async function runAttached(
  session: Session,
  name: string,
  request: ExecRequest,
  { stdin, interactive, disconnectTimeout = LIMITS.disconnectTimeoutSeconds.default }: ExecOptions,
): Promise<CommandResult> {
  const edge = await session.client.createEdgeClient(name)
  const command = await printIfInterrupted(
    session,
    `interrupted. If the command on ${name} was started, it is terminated after ${disconnectTimeout} s.`,
    () =>
      startAttached(edge, {
        ...request,
        stdin: stdin && (interactive === true || !process.stdin.isTTY),
        disconnectTimeoutSeconds: disconnectTimeout,
      }),
  )
  const { processId, attachment } = command
  const removeHandlers = handleSignals(session, edge, command, disconnectTimeout)
  try {
    const exit = await replaceNotFoundMessage(attachment.result, noSuchProcessMessage(name, processId))
    session.signal.throwIfAborted()
    if (exit === null) {
      printMessage(`detached; the command continues on ${name}.`)
      printStderr(formatDetachedHint(name, processId))
      return { exitCode: EXIT.ok, continues: true }
    }
    if (!exit.timedOut) return { exitCode: toExitCode(exit), continues: false }
    printMessage(formatTimedOut(request.timeoutSeconds, 'Use a longer --timeout (up to 600), or none.'))
    return { exitCode: EXIT.timedOut, continues: false }
  } finally {
    command.stopForwarding()
    removeHandlers()
  }
}

/** Returns a function that removes the handlers. */
function handleSignals(
  session: Session,
  edge: EdgeClient,
  { processId, attachment, stopForwarding, abort }: AttachedCommand,
  disconnectTimeout: number,
): () => void {
  const onInterrupt = async () => {
    stopForwarding()
    printMessage(
      `interrupted; terminating the command on ${edge.boxName}. Ctrl-C again to exit immediately.\n` +
        'To leave a command running, press Ctrl-\\ instead, or start it with `box exec -d`.',
    )
    try {
      await terminateCommand(edge, processId)
    } catch (error) {
      if (!(error instanceof CliError && error.code === 'not_found')) {
        const reason = error instanceof Error ? error.message : String(error)
        printMessage(`${reason} The box terminates the command after ${disconnectTimeout} s.`)
        return abort(session.signal.reason)
      }
    }
    setTimeout(() => abort(session.signal.reason), OUTPUT_GRACE_MS).unref()
  }
  const onQuit = () => {
    stopForwarding()
    attachment.detach()
  }
  const onAbort = () => void onInterrupt()
  session.signal.addEventListener('abort', onAbort)
  if (session.signal.aborted) onAbort()
  process.once('SIGQUIT', onQuit)
  // The exit code has the reason for which box exits: a failure to terminate the command is not reported.
  const removeClosedPipeHandler = session.onClosedPipe(async () => {
    await terminateCommand(edge, processId).catch(() => undefined)
  })
  return () => {
    session.signal.removeEventListener('abort', onAbort)
    process.off('SIGQUIT', onQuit)
    removeClosedPipeHandler()
  }
}
