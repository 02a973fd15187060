// Maintains the logs of processes under the shell runner, whose commands write to the logs directly: records the times of
// the output, and discards the heads of the logs.
import type { Logger } from 'pino'
import type { Clock } from '../../../shared/clock.ts'
import { createHeadDiscarder } from './log-bounds.ts'
import type { ProcessMonitor } from './process-monitor.ts'
import { createTimeRecorder } from './time-recorder.ts'

/** The functions have no effect for a process under the native runner. */
export type ShellLogs = {
  recordTimes(monitor: Pick<ProcessMonitor, 'meta' | 'detachedProcess'>): void
  discardHead(monitor: Pick<ProcessMonitor, 'meta' | 'detachedProcess'>): void
}

export function createShellLogs({ clock, log }: { clock: Clock; log: Logger }): ShellLogs {
  const timeRecorder = createTimeRecorder({ clock, log })
  const discardHead = createHeadDiscarder(log)
  return {
    recordTimes({ meta, detachedProcess }) {
      if (meta.runner === 'sh') timeRecorder.update(detachedProcess)
    },
    discardHead({ meta, detachedProcess }) {
      if (meta.runner === 'sh') void discardHead(detachedProcess, meta.maxLogBytes)
    },
  }
}
