// The commands of a box: detached processes, attached clients, and the recorders of the history.
import type { Logger } from 'pino'
import { LIMITS } from '../../shared/limits.ts'
import { MAX_SURVIVING_COMMANDS } from '../../shared/report-limits.ts'
import type { Spool } from '../reports/spool.ts'
import type { RunningClock } from '../running-clock.ts'
import { type Attachments, createAttachments } from './attached/attachments.ts'
import { type DetachedOptions, openDetachedProcesses } from './detached/processes.ts'
import type { DetachedProcesses } from './detached/types.ts'
import { createDetachedRecorder } from './history/detached-recorder.ts'
import { createSyncRecorder, type SyncRecorder } from './history/sync-recorder.ts'

export type CommandsOptions = DetachedOptions & {
  runningClock: Pick<RunningClock, 'startTimer' | 'onThaw'>
  log: Logger
  bootId: string
  spool: Spool
}

export type Commands = {
  processes: DetachedProcesses
  attachments: Attachments
  /** Records synchronous commands and terminal sessions. */
  recorder: SyncRecorder
  /**
   * The ids of running attached commands, which the history records as synchronous, and which survive an agent. The report
   * has space for the terminal sessions too.
   */
  listSurviving(): string[]
  /** Resolves when the spool has the reports on everything that has happened so far. */
  flushReports(): Promise<void>
  /** Resolves when the spool has the exits of all commands that are running now. */
  waitForExits(): Promise<void>
  /** The processes keep running. */
  close(): Promise<void>
}

export async function openCommands({ spool, ...options }: CommandsOptions): Promise<Commands> {
  const { runningClock, log, bootId } = options
  const processes = await openDetachedProcesses(options)
  const recorder = createSyncRecorder(spool, log)
  const detachedRecorder = createDetachedRecorder({ processes, spool, log, bootId })
  const attachments = createAttachments({
    processes,
    log,
    startTimer: runningClock.startTimer,
    waitUntilRecorded: detachedRecorder.waitUntilRecorded,
  })
  return {
    processes,
    attachments,
    recorder,
    listSurviving: () =>
      processes
        .list()
        .filter(({ attached, exit }) => attached !== null && exit === null)
        .map(({ processId }) => processId)
        .slice(0, MAX_SURVIVING_COMMANDS - LIMITS.terminalSessions),
    flushReports: detachedRecorder.flush,
    async waitForExits() {
      await Promise.all([recorder.waitUntilIdle(), detachedRecorder.waitUntilIdle()])
    },
    async close() {
      recorder.close()
      attachments.close()
      await detachedRecorder.close()
      await processes.close()
    },
  }
}
