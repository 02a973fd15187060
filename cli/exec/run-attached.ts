// box exec: runs an attached command with live output and stdin. Ctrl-C terminates it, Ctrl-\ detaches from it.
import type { ExecRequest } from '../../shared/api/exec.ts'
import type { ExecStarted } from '../../shared/api/processes.ts'
import { LIMITS } from '../../shared/limits.ts'
import type { Attachment } from '../attach/attachment.ts'
import type { EdgeClient } from '../client.ts'
import { CliError, EXIT } from '../exit-codes.ts'
import { printMessage, printStderr } from '../output.ts'
import {
  formatDetachedHint,
  formatTimedOut,
  noSuchProcessMessage,
  replaceNotFoundMessage,
  toExitCode,
} from '../process-messages.ts'
import { invalidDataError } from '../server-data.ts'
import type { Session } from '../session.ts'
import { type ExecOptions, printIfInterrupted, replaceCwdError } from './request.ts'

/** Time for the output that remains when an interrupted command has exited. */
const OUTPUT_GRACE_MS = 5000

export async function runAttached(
  session: Session,
  name: string,
  request: ExecRequest,
  { stdin, interactive, disconnectTimeout = LIMITS.disconnectTimeoutSeconds.default }: ExecOptions,
): Promise<number> {
  // Imported here: the other commands do not need these modules. Loaded while the requests are sent.
  const modules = Promise.all([
    import('../attach/attachment.ts'),
    import('../attach/standard-streams.ts'),
    import('../attach/open-websocket.ts'),
  ])
  const edge = await session.client.createEdgeClient(name)
  const forwardsStdin = stdin && (interactive === true || !process.stdin.isTTY)
  const started = await printIfInterrupted(
    session,
    `interrupted. If the command on ${name} was started, it is terminated after ${disconnectTimeout} s.`,
    () =>
      replaceCwdError(
        edge.requestJson<ExecStarted>('POST', '/exec', {
          ...request,
          attached: true,
          ...(forwardsStdin && { stdin: true }),
          disconnectTimeoutSeconds: disconnectTimeout,
        }),
        name,
        request.cwd,
      ),
  )
  const { processId } = started
  if (typeof processId !== 'string') throw invalidDataError('a response without a processId')
  const [{ attach }, { forwardStdin, writeOutput }] = await modules
  const controller = new AbortController()
  const { signal } = controller
  const attachment = attach({
    connect: (position, connectSignal) =>
      edge.connect(
        `/exec/${encodeURIComponent(processId)}/attach`,
        {
          stdoutOffset: String(position?.stdout ?? 0),
          stderrOffset: String(position?.stderr ?? 0),
        },
        connectSignal,
      ),
    start: { stdout: 0, stderr: 0 },
    sink: {
      write: (channel, bytes) => writeOutput(channel, bytes, signal),
      reportMissing: (channel, bytes) =>
        printMessage(`${bytes} bytes of ${channel} before this point are missing.`),
    },
    signal,
    onOutage: (reason) =>
      printMessage(`disconnected from the command. ${reason} Reconnecting; press Ctrl-C to stop.`),
    onReconnect: () => printMessage('reconnected; the output continues where it stopped.'),
  })
  const stopForwarding = forwardsStdin ? forwardStdin(attachment, process.stdin) : () => undefined
  const removeHandlers = handleSignals(session, attachment, controller, {
    edge,
    name,
    processId,
    disconnectTimeout,
    stopForwarding,
  })
  try {
    const exit = await replaceNotFoundMessage(attachment.result, noSuchProcessMessage(name, processId))
    session.signal.throwIfAborted()
    if (exit === null) {
      printMessage(`detached; the command continues on ${name}.`)
      printStderr(formatDetachedHint(name, processId))
      return EXIT.ok
    }
    if (!exit.timedOut) return toExitCode(exit)
    printMessage(formatTimedOut(request.timeoutSeconds, 'Use a longer --timeout (up to 600), or none.'))
    return EXIT.timedOut
  } finally {
    stopForwarding()
    removeHandlers()
  }
}

type RunningCommand = {
  edge: EdgeClient
  name: string
  processId: string
  /** Seconds. */
  disconnectTimeout: number
  stopForwarding(): void
}

/** Returns a function that removes the handlers. */
function handleSignals(
  session: Session,
  attachment: Attachment,
  controller: AbortController,
  { edge, name, processId, disconnectTimeout, stopForwarding }: RunningCommand,
): () => void {
  const terminate = () => edge.forCleanup().requestJson('DELETE', `/exec/${encodeURIComponent(processId)}`)

  const onInterrupt = async () => {
    stopForwarding()
    printMessage(
      `interrupted; terminating the command on ${name}. Ctrl-C again to exit immediately.\n` +
        'To leave a command running, press Ctrl-\\ instead, or start it with `box exec -d`.',
    )
    try {
      await terminate()
    } catch (error) {
      if (!(error instanceof CliError && error.code === 'not_found')) {
        const reason = error instanceof Error ? error.message : String(error)
        printMessage(`${reason} The box terminates the command after ${disconnectTimeout} s.`)
        return controller.abort(session.signal.reason)
      }
    }
    setTimeout(() => controller.abort(session.signal.reason), OUTPUT_GRACE_MS).unref()
  }
  const onQuit = () => {
    stopForwarding()
    attachment.detach()
  }
  const onAbort = () => void onInterrupt()
  session.signal.addEventListener('abort', onAbort)
  if (session.signal.aborted) onAbort()
  process.once('SIGQUIT', onQuit)
  const removeClosedPipeHandler = session.onClosedPipe(
    async () => void (await terminate().catch(() => undefined)),
  )
  return () => {
    session.signal.removeEventListener('abort', onAbort)
    process.off('SIGQUIT', onQuit)
    removeClosedPipeHandler()
  }
}
