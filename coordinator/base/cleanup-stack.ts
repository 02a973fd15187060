// The steps that stop the coordinator, in order. Each step is bounded, so a stop always completes.
import type { Logger } from 'pino'
import { withTimeout } from './timeout.ts'

export type CleanupStack = {
  /** @param name completes "failed to …" */
  add(name: string, step: () => unknown, timeoutMs?: number): void
  /** Runs the steps in reverse order, once. Logs a step that fails or takes too long, and continues with the next one. */
  close(): Promise<void>
}

const STEP_TIMEOUT_MS = 5_000

export function createCleanupStack(log: Pick<Logger, 'error'>): CleanupStack {
  const steps: { name: string; run: () => unknown; timeoutMs: number }[] = []
  let closed: Promise<void> | undefined

  const runStep = async (run: () => unknown): Promise<unknown> => run()

  async function runSteps(): Promise<void> {
    for (const { name, run, timeoutMs } of steps.reverse()) {
      try {
        await withTimeout(runStep(run), timeoutMs, `not finished after ${timeoutMs} ms`)
      } catch (err) {
        log.error({ err }, `failed to ${name}; continuing to stop`)
      }
    }
  }

  return {
    add: (name, run, timeoutMs = STEP_TIMEOUT_MS) => void steps.push({ name, run, timeoutMs }),
    close() {
      closed ??= runSteps()
      return closed
    },
  }
}
