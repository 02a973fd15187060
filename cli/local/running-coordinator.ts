// Signals the coordinator of a data directory on this machine, and waits for its exit.
import { setTimeout as sleep } from 'node:timers/promises'
import type { CoordinatorRecord } from '../../shared/coordinator-process.ts'
import { isAlive } from '../connection/coordinator-record.ts'
import { CliError, EXIT } from '../output/exit-codes.ts'

const POLL_INTERVAL_MS = 50

/** No-op when the process has exited. @throws CliError without the permission */
export function sendSignal(coordinator: CoordinatorRecord, signal: NodeJS.Signals): void {
  if (!isAlive(coordinator)) return
  try {
    process.kill(coordinator.pid, signal)
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code === 'ESRCH') return
    if (code !== 'EPERM') throw error
    throw new CliError(
      EXIT.failed,
      `Cannot stop the coordinator (pid ${coordinator.pid}): permission denied. Run box as the user who started it.`,
    )
  }
}

/** Polls, because only the parent process is notified of an exit. Returns false after `timeoutMs`. */
export async function waitUntilExited(
  coordinator: CoordinatorRecord,
  timeoutMs: number,
  signal: AbortSignal,
): Promise<boolean> {
  for (const deadline = performance.now() + timeoutMs; performance.now() < deadline; ) {
    if (!isAlive(coordinator)) return true
    await sleep(POLL_INTERVAL_MS, undefined, { signal })
  }
  return false
}
