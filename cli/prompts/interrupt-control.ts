// What Ctrl-C and Ctrl-\ do while a prompt is in the queue or its run is in progress.
import type { PromptInterrupted } from '../../shared/api/prompts.ts'
import type { EdgeClient } from '../connection/client.ts'
import type { Session } from '../connection/session.ts'
import { canAsk } from '../output/confirm.ts'
import { CliError } from '../output/exit-codes.ts'
import { printMessage } from '../output/print.ts'
import { askChoice } from './ask-choice.ts'

/** The reasons with which `signal` of an InterruptControl is aborted, besides those of the session. */
export const DETACHED = Symbol('detached')
export const DEQUEUED = Symbol('dequeued')

export type InterruptControl = {
  /** Aborted when the client no longer follows the run. */
  signal: AbortSignal
  /** Resolves when no question is on the screen. */
  waitForAnswer(): Promise<void>
  /** The questions are those for a run, no longer those for the queue. */
  setRunning(): void
  close(): void
}

/**
 * On a terminal, Ctrl-C asks and a second Ctrl-C interrupts. Otherwise Ctrl-C interrupts. While an interrupt is in progress,
 * Ctrl-C aborts the signal of the session. Ctrl-\ detaches.
 * @param json results are printed as JSON
 */
export function createInterruptControl(
  session: Session,
  edge: EdgeClient,
  { runId, json }: { runId: string; json: boolean },
): InterruptControl {
  const controller = new AbortController()
  let isRunning = false
  let question: { answer: Promise<void>; close: AbortController } | null = null

  const onAbort = () => controller.abort(session.signal.reason)
  const onQuit = () => controller.abort(DETACHED)
  const removeInterruptHandler = session.onInterrupt(() => {
    question?.close.abort()
    if (question !== null || !canAsk(json)) interrupt().catch((error) => controller.abort(error))
    else ask()
  })
  session.signal.addEventListener('abort', onAbort)
  if (session.signal.aborted) onAbort()
  process.on('SIGQUIT', onQuit)

  async function interrupt(): Promise<void> {
    removeInterruptHandler()
    // Then the line of the question is complete.
    if (question?.close.signal.aborted) await question.answer
    printMessage(
      isRunning
        ? 'interrupting the run. Ctrl-C again to exit immediately.'
        : 'removing the prompt from the queue.',
    )
    try {
      const { dequeued } = await edge.requestJson<PromptInterrupted>(
        'POST',
        `/prompts/${encodeURIComponent(runId)}/interrupt`,
      )
      if (dequeued) controller.abort(DEQUEUED)
    } catch (error) {
      if (!(error instanceof CliError) || session.signal.aborted) throw error
      const message = `could not interrupt the run. ${error.message}\nTry again with \`box interrupt ${edge.boxName} ${runId}\`.`
      throw new CliError(error.exitCode, message, { code: error.code ?? 'failed', cause: error })
    }
  }

  function ask(): void {
    const close = new AbortController()
    const action = isRunning ? 'Interrupt the run?' : 'Remove the prompt from the queue?'
    const text = `${action} [y] yes, [d] no, and detach from it, [n] no, continue: `
    // The terminal has shown ^C.
    process.stderr.write('\n')
    const answer = askChoice(text, 'ydn', AbortSignal.any([close.signal, controller.signal])).then(
      (letter) => {
        question = null
        if (letter === 'd') controller.abort(DETACHED)
        // The request is not awaited: the run may print until it ends.
        if (letter === 'y') interrupt().catch((error) => controller.abort(error))
      },
    )
    question = {
      answer: answer.catch((error) => controller.abort(error)),
      close,
    }
  }

  return {
    signal: controller.signal,
    async waitForAnswer() {
      await question?.answer
    },
    setRunning() {
      isRunning = true
    },
    close() {
      question?.close.abort()
      removeInterruptHandler()
      session.signal.removeEventListener('abort', onAbort)
      process.off('SIGQUIT', onQuit)
    },
  }
}
