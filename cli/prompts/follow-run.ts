// Prints a run until it ends, and returns the exit code of the command.
import type { QueuedPrompt, Run } from '../../shared/api/prompts.ts'
import type { EdgeClient } from '../connection/client.ts'
import type { Session } from '../connection/session.ts'
import { explainNotFound } from '../follow/deleted-box.ts'
import { isBoxStopped } from '../follow/is-box-stopped.ts'
import { CliError, EXIT } from '../output/exit-codes.ts'
import { printMessage, printStderr, sanitize } from '../output/print.ts'
import { isNotRunning } from '../processes/list-processes.ts'
import { replaceNotFoundMessage } from '../processes/process-messages.ts'
import { createEventPrinter, type EventPrinter, type PrinterOptions } from './event-printer.ts'
import { createInterruptControl, DEQUEUED, DETACHED, type InterruptControl } from './interrupt-control.ts'
import { formatRunHint, INTERRUPTED_EXIT_CODE, noSuchRunMessage, toRunExitCode } from './messages.ts'
import { readRunStream } from './run-stream.ts'
import { waitInQueue } from './wait-in-queue.ts'

/** A run, or a prompt that waits for `active`. */
export type FollowedPrompt = { run: Run } | { queued: QueuedPrompt; active: Run | null }

/** Follows the run of a prompt that this command has sent: Ctrl-C interrupts it. Throws as followRun does. */
export async function followOwnRun(
  session: Session,
  edge: EdgeClient,
  prompt: FollowedPrompt,
  options: PrinterOptions,
): Promise<number> {
  const id = 'run' in prompt ? prompt.run.id : prompt.queued.id
  const control = createInterruptControl(session, edge, { runId: id, json: options.json ?? false })
  try {
    return await follow(session, edge, prompt, { options, control })
  } catch (error) {
    if (error === DETACHED) return EXIT.ok
    if (error === DEQUEUED) return printDequeued()
    throw error
  } finally {
    control.close()
  }
}

/** Follows a run of any client: Ctrl-C ends only this command. @throws CliError when the run fails or is interrupted */
export const followRun = (
  session: Session,
  edge: EdgeClient,
  prompt: FollowedPrompt,
  options: PrinterOptions,
): Promise<number> =>
  follow(session, edge, prompt, {
    options,
    control: {
      signal: session.signal,
      waitForAnswer: async () => undefined,
      setRunning: () => undefined,
    },
  })

type Following = { options: PrinterOptions; control: Omit<InterruptControl, 'close'> }

async function follow(
  session: Session,
  edge: EdgeClient,
  prompt: FollowedPrompt,
  { options, control }: Following,
): Promise<number> {
  const { boxName } = edge
  const { signal } = control
  const id = 'run' in prompt ? prompt.run.id : prompt.queued.id
  const printer = createEventPrinter(options, signal)
  let run = 'run' in prompt ? prompt.run : null
  const onAbort = () => printDetached(boxName, id, { isQueued: run === null, reason: signal.reason })
  if (run === null || run.status === 'running') signal.addEventListener('abort', onAbort)
  try {
    if ('queued' in prompt) {
      await printer.printQueued(prompt.queued, prompt.active)
      run = await waitInQueue({
        edge,
        queued: prompt.queued,
        signal,
        async onPosition(queued, active) {
          await control.waitForAnswer()
          await printer.printQueued(queued, active)
        },
        onOutage: printOutage,
        isBoxStopped: () => isBoxStopped(session, edge),
      })
    }
    if (run === null) return printDequeued()
    control.setRunning()
    await control.waitForAnswer()
    await printer.printRun(run)
    return await printRun(session, edge, { run, printer, control })
  } catch (error) {
    throw await explainNotFound(toStoppedError(error, boxName, id), session.client, edge)
  } finally {
    signal.removeEventListener('abort', onAbort)
  }
}

type Followed = {
  run: Run
  printer: EventPrinter
  control: Following['control']
}

async function printRun(
  session: Session,
  edge: EdgeClient,
  { run, printer, control }: Followed,
): Promise<number> {
  const ended = await replaceNotFoundMessage(
    readRunStream({
      edge,
      runId: run.id,
      signal: control.signal,
      async onEvent(event) {
        await control.waitForAnswer()
        control.signal.throwIfAborted()
        await printer.printEvent(event)
      },
      onMissing: (count) =>
        printMessage(`${count} events before this point are missing: ${edge.boxName} has discarded them.`),
      onOutage: printOutage,
      onReconnect: () => printMessage('reconnected; the output continues where it stopped.'),
      onWait: (reason) => printMessage(`waiting. ${reason} Retrying; press Ctrl-C to stop.`),
      isBoxStopped: () => isBoxStopped(session, edge),
    }),
    noSuchRunMessage(edge.boxName, run.id),
  )
  await control.waitForAnswer()
  if (ended === null) return printDequeued()
  await printer.printEnd(ended)
  return toRunExitCode(ended, edge.boxName, printer.hasPrintedError(ended.error ?? ''))
}

const printOutage = (reason: string): void =>
  printMessage(`disconnected from the run. ${reason} Reconnecting; press Ctrl-C to stop.`)

function printDequeued(): number {
  printMessage('the prompt was removed from the queue.')
  return INTERRUPTED_EXIT_CODE
}

/** An Error is printed at the end; an interrupted command has the reason of the session, with an empty message. */
function printDetached(
  boxName: string,
  runId: string,
  { isQueued, reason }: { isQueued: boolean; reason: unknown },
): void {
  if (reason === DEQUEUED || (reason instanceof Error && reason.message !== '')) return
  printMessage(
    `detached; ${isQueued ? 'the prompt stays in the queue' : 'the run continues'}${isQueued ? ' of' : ' on'} ${boxName}.`,
  )
  printStderr(formatRunHint(boxName, runId))
}

function toStoppedError(error: unknown, boxName: string, runId: string): unknown {
  if (!isNotRunning(error)) return error
  return new CliError(
    error.exitCode,
    `${boxName} is not running. A stop interrupts its runs; the runs of a frozen box continue when it is woken. ` +
      `Then \`box prompts ${boxName} ${sanitize(runId)}\` shows the run. (${error.code})`,
    { code: 'box_not_running', cause: error },
  )
}
