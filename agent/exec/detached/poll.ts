// Watches the running processes: detects exits by notifications of the runners and by polling, maintains the logs of the
// shell runner, and extends the time limits after a freeze.
import { mkdir, readdir, rm, unlink } from 'node:fs/promises'
import { join } from 'node:path'
import type { Logger } from 'pino'
import type { RunningClock } from '../../running-clock.ts'
import type { ProcessMonitor } from './process-monitor.ts'
import type { ShellLogs } from './shell-logs.ts'
import type { TrackedProcesses } from './tracked-processes.ts'
import { watchPath } from './watch-path.ts'

export type PollOptions = {
  /** State directory of all processes. */
  dir: string
  tracked: Pick<TrackedProcesses, 'running' | 'get'>
  shellLogs: ShellLogs
  runningClock?: Pick<RunningClock, 'onThaw'> | undefined
  log: Logger
}

/** Polling detects changes without a notification: a killed runner, and the growth of a log under the shell runner. */
const POLL_MS = 1000

/** Resolves after the first poll, with the function that stops polling. */
export async function startPolling(options: PollOptions): Promise<() => void> {
  const { dir, tracked, shellLogs, runningClock, log } = options

  /** Errors such as EMFILE are transient: the next poll retries. */
  function checkExit(monitor: ProcessMonitor): void {
    try {
      monitor.checkExit()
    } catch (err) {
      log.error(
        { err, processId: monitor.meta.processId },
        'failed to check whether a detached process has exited; will retry',
      )
    }
  }
  function poll(): void {
    for (const monitor of tracked.running) checkExit(monitor)
    for (const monitor of tracked.running) {
      shellLogs.recordTimes(monitor)
      shellLogs.discardHead(monitor)
    }
  }
  function extendDeadline(monitor: ProcessMonitor, frozenMs: number): void {
    monitor
      .extendDeadline(frozenMs)
      .catch((err: unknown) =>
        log.error(
          { err, processId: monitor.meta.processId },
          'failed to record that a detached process was frozen',
        ),
      )
  }

  const notificationDir = join(dir, '.exited')
  await mkdir(notificationDir, { recursive: true, mode: 0o700 })
  const stopWatching = watchPath(notificationDir, (processId) => {
    if (processId === null) return poll()
    const monitor = tracked.get(processId)
    if (monitor !== undefined) checkExit(monitor)
    void unlink(join(notificationDir, processId)).catch((err: NodeJS.ErrnoException) => {
      if (err.code !== 'ENOENT') log.error({ err }, 'failed to remove an exit notification')
    })
  })
  for (const name of await readdir(notificationDir)) await rm(join(notificationDir, name), { force: true })
  poll()
  const timer = setInterval(poll, POLL_MS).unref()
  const stopExtending = runningClock?.onThaw((frozenMs) => {
    for (const monitor of tracked.running) extendDeadline(monitor, frozenMs)
  })
  return () => {
    clearInterval(timer)
    stopExtending?.()
    stopWatching()
  }
}
