// Monitors one detached process: detects the exit, enforces the time limit and terminates the process tree.
import type { Logger } from 'pino'
import type { Clock } from '../../../shared/clock.ts'
import { ApiError } from '../../../shared/errors.ts'
import { isAlive } from '../../process-table.ts'
import type { StartTimer } from '../../running-clock.ts'
import { sendSignal } from '../terminate-tree.ts'
import { LOST_EXIT, resolveExit } from './exit-status.ts'
import { MonitoredProcess } from './monitored-process.ts'
import {
  type ExitRecord,
  type ProcessMetadata,
  readExitRecord,
  type StartRecord,
  type TerminationCause,
  writeMetadata,
} from './record.ts'
import { type KillResult, Terminator } from './terminator.ts'
import type { DetachedProcess, ProcessExit } from './types.ts'

export type ProcessMonitorOptions = {
  /** The process directory. */
  dir: string
  meta: ProcessMetadata
  startRecord: StartRecord
  bootId: string
  clock: Clock
  /** Starts the timer of the time limit. */
  startTimer: StartTimer
  log: Logger
  onExit(): void
}

/**
 * Time limit for the runner to write the exit record after SIGKILL. Longer than FULL_DISK_TIMEOUT_SECONDS in
 * native/run.c.
 */
const EXIT_RECORD_TIMEOUT_MS = 15_000

export class ProcessMonitor {
  readonly #options: ProcessMonitorOptions
  readonly #process: MonitoredProcess
  readonly #terminator: Terminator
  #meta: ProcessMetadata
  #stopTimer: (() => void) | undefined
  #isClosed = false

  constructor(options: ProcessMonitorOptions) {
    const { dir, meta, startRecord, clock, log } = options
    this.#options = options
    this.#meta = meta
    this.#process = new MonitoredProcess(dir, meta, startRecord.command.pid)
    this.#terminator = new Terminator({
      dir,
      meta,
      startRecord,
      clock,
      log,
      waitForExit: () => this.#waitForExit(),
    })
  }

  get detachedProcess(): DetachedProcess {
    return this.#process
  }

  get meta(): ProcessMetadata {
    return this.#meta
  }

  /** Detects an earlier exit, or completes the termination of an earlier agent and starts the time limit. To be called once. */
  start(): void {
    this.checkExit()
    if (this.#process.exit !== null) return
    const [interruptedCause] = Object.keys(this.#terminator.requestTimes) as TerminationCause[]
    if (interruptedCause !== undefined) this.#terminator.terminateInBackground(interruptedCause)
    this.#startTimeLimit()
  }

  /** Detects an exit of the process. Costs two small file reads. */
  checkExit(): void {
    if (this.#process.exit !== null || this.#isClosed || this.#applyExitRecord()) return
    const { bootId, startRecord } = this.#options
    if (this.#meta.bootId === bootId && isAlive(startRecord.runner)) return
    // The runner may have written the record after the first read and then exited.
    if (!this.#applyExitRecord()) this.#setExit(LOST_EXIT, null)
  }

  /** Records that the process did not run for this time, for the time limit after a restart of the agent. */
  async extendDeadline(frozenMs: number): Promise<void> {
    const { deadline } = this.#meta
    if (deadline === null || this.#process.exit !== null || this.#isClosed) return
    this.#meta = { ...this.#meta, deadline: deadline + Math.round(frozenMs) }
    await writeMetadata(this.#options.dir, this.#meta)
  }

  /** Terminates the process tree. After the exit, terminates the remaining background processes. */
  async kill(): Promise<KillResult> {
    this.checkExit()
    if (this.#process.exit === null) return this.#terminator.terminate('kill')
    await this.#terminator.terminateRemaining()
    return { wasRunning: false, signal: null }
  }

  /** Sends a signal to the command's process group. False when the command has exited. */
  signal(name: NodeJS.Signals): boolean {
    const { command } = this.#options.startRecord
    this.checkExit()
    if (this.#process.exit !== null || !isAlive(command)) return false
    // The command is the leader of its process group.
    return sendSignal(-command.pid, name)
  }

  /** Stops monitoring. Resolves when a termination in progress has completed. */
  async close(): Promise<void> {
    this.#stopTimer?.()
    await this.#terminator.waitUntilIdle()
    this.#isClosed = true
  }

  #startTimeLimit(): void {
    const { clock, startTimer } = this.#options
    const { deadline, startedAt } = this.#meta
    if (deadline === null) return
    // min(): a clock that was set back must not extend the limit.
    const remainingMs = Math.min(deadline - clock.now(), deadline - startedAt)
    this.#stopTimer = startTimer(() => this.#onTimeLimit(), Math.max(0, remainingMs))
  }

  #onTimeLimit(): void {
    this.checkExit()
    if (this.#process.exit === null && !this.#isClosed) this.#terminator.terminateInBackground('timeout')
  }

  /** Returns whether the runner has recorded the exit. */
  #applyExitRecord(): boolean {
    const { dir, log } = this.#options
    const record = readExitRecord(dir)
    if (record === undefined) return false
    if (record.outputIncomplete)
      log.error(
        { processId: this.#meta.processId },
        'the runner could not write all output of a detached process',
      )
    this.#setExit(resolveExit(record, this.#terminator.requestTimes), record.sizes)
    return true
  }

  #setExit(exit: ProcessExit, finalSizes: ExitRecord['sizes']): void {
    const { log, onExit } = this.#options
    this.#stopTimer?.()
    log.info({ processId: this.#meta.processId, ...exit }, 'detached process exited')
    this.#process.setExit(exit, finalSizes)
    onExit()
  }

  async #waitForExit(): Promise<void> {
    this.checkExit()
    if (this.#process.exit !== null) return
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    const timer = setTimeout(
      () =>
        reject(
          new ApiError(
            'exec_failed',
            'The command was terminated, but its exit was not recorded. The disk may be full: free space and try again.',
          ),
        ),
      EXIT_RECORD_TIMEOUT_MS,
    )
    const unsubscribe = this.#process.onExit(resolve)
    await promise.finally(() => {
      clearTimeout(timer)
      unsubscribe()
    })
  }
}
