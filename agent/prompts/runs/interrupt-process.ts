// Interrupts a coding agent: the signal with which it ends by itself, then the termination of its process tree.
import type { DetachedProcess, DetachedProcesses } from '../../exec/detached/types.ts'
import { boundedWait } from '../bounded-wait.ts'

export type InterruptSignal = 'INT' | 'TERM' | 'KILL'

/** How long the coding agent may take to end its tools and to store its session. */
const GRACE_MS = 5000

/**
 * Resolves with the strongest signal that was needed; null when the process had exited already.
 * @param signal rejects when it aborts
 * @throws ApiError exec_failed when the process survives SIGKILL
 */
export async function interruptProcess(
  processes: DetachedProcesses,
  detachedProcess: DetachedProcess,
  { first, signal }: { first: InterruptSignal; signal: AbortSignal },
): Promise<InterruptSignal | null> {
  const { processId } = detachedProcess
  if (!processes.signal(processId, `SIG${first}`)) return null
  await waitForExit(detachedProcess, GRACE_MS, signal)
  if (detachedProcess.exit !== null) return first
  signal.throwIfAborted()
  const killed = await processes.kill(processId)
  return killed.signal ?? first
}

/** Resolves at the exit, when the signal aborts, and after `ms`. */
export async function waitForExit(
  detachedProcess: DetachedProcess,
  ms: number | null,
  signal: AbortSignal,
): Promise<void> {
  const exited = Promise.withResolvers<void>()
  const unsubscribe = detachedProcess.onExit(exited.resolve)
  if (detachedProcess.exit === null) await boundedWait(exited.promise, ms, [signal])
  unsubscribe()
}
