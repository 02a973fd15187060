// One run in progress: follows its output, interrupts it, terminates it when it does not exit after its final event, and
// records how it ended.
import type { Logger } from 'pino'
import type { Clock } from '../../../shared/clock.ts'
import { ApiError } from '../../../shared/errors.ts'
import type { DetachedProcess, DetachedProcesses } from '../../exec/detached/types.ts'
import type { StartTimer } from '../../running-clock.ts'
import { type FollowerStart, followLog, type LogFollower } from '../events/log-follower.ts'
import type { Outcome, Provider } from '../providers/types.ts'
import type { RunState } from '../types.ts'
import { findExitGrace } from './exit-grace.ts'
import { finishRun } from './finish-run.ts'
import { type InterruptSignal, interruptProcess, waitForExit } from './interrupt-process.ts'
import { toRunState } from './run-fields.ts'
import type { RunRecord } from './run-record.ts'
import { findOutcome, NO_RESULT_MESSAGE } from './run-status.ts'
import { StoredRecord } from './stored-record.ts'

export type ActiveRunOptions = {
  record: RunRecord
  runDir: string
  detachedProcess: DetachedProcess
  processes: DetachedProcesses
  provider: Provider
  start: FollowerStart
  checkpointBytes: number
  /** When the box began to stop; null: the box does not stop. Milliseconds since the epoch. */
  getStopRequestedAt(): number | null
  clock: Clock
  startTimer: StartTimer
  log: Logger
  /** Called after each change of `state` until the run ends. */
  onChange(state: RunState): void
}

const NO_RESULT: Outcome = { status: 'failed', message: NO_RESULT_MESSAGE }

export class ActiveRun {
  readonly follower: LogFollower
  /** Resolves with the record when the run has ended and the record is durable; with null after close(). */
  readonly ended: Promise<RunRecord | null>
  readonly #options: ActiveRunOptions
  readonly #record: StoredRecord
  readonly #closing = new AbortController()
  #state: RunState
  #interruption: Promise<InterruptSignal | null> | undefined
  #stopGrace: () => void = () => undefined
  #termination: Promise<void> | undefined
  /** The number of reports at which the grace time was started. */
  #graceStartedAt = -1

  constructor(options: ActiveRunOptions) {
    const { record, runDir, detachedProcess, provider, start, checkpointBytes, log } = options
    this.#options = options
    this.#record = new StoredRecord(runDir, record, log)
    this.#state = {
      ...toRunState(record),
      pid: detachedProcess.pid,
      sessionId: start.position.state.sessionId,
      eventCount: start.position.seq,
    }
    this.follower = followLog({
      detachedProcess,
      provider,
      runDir,
      start,
      checkpointBytes,
      log,
      onProgress: () => this.#updateState(),
    })
    this.ended = this.#waitForEnd()
    // The previous agent was killed during the termination.
    if (record.conclusion !== null) this.#terminate()
    // The previous agent was killed during the interrupt.
    if (record.interrupt !== null && detachedProcess.exit === null)
      this.interrupt(record.interrupt.cause).catch((err: unknown) => {
        if (!this.#closing.signal.aborted) log.error({ err, runId: record.id }, 'failed to interrupt a run')
      })
  }

  get state(): RunState {
    return this.#state
  }

  /** Resolves when the run has ended. `signal`: null when the CLI had exited already. */
  interrupt(cause: string): Promise<InterruptSignal | null> {
    this.#interruption ??= this.#interruptOnce(cause).finally(() => {
      this.#interruption = undefined
    })
    return this.#interruption
  }

  /** The CLI keeps running. */
  async close(): Promise<void> {
    this.#closing.abort(new ApiError('exec_failed', 'The agent is stopping. Try again.'))
    this.#stopGrace()
    this.follower.close()
    await Promise.allSettled([this.ended, this.#interruption, this.#termination])
    await this.#record.settle()
  }

  #updateState(): void {
    this.#updateGrace()
    const { seq, state } = this.follower.position
    if (seq === this.#state.eventCount && state.sessionId === this.#state.sessionId) return
    this.#state = { ...this.#state, eventCount: seq, sessionId: state.sessionId }
    this.#options.onChange(this.#state)
  }

  /** Starts the grace time at a final event, and again at each later line of the coding agent. */
  #updateGrace(): void {
    const { reports, position } = this.follower
    if (reports === this.#graceStartedAt) return
    this.#graceStartedAt = reports
    this.#stopGrace()
    const graceMs = findExitGrace(position.state)
    if (graceMs === null) return
    this.#stopGrace = this.#options.startTimer(() => this.#terminate(), graceMs)
  }

  #terminate(): void {
    const { log } = this.#options
    this.#termination ??= this.#terminateOnce().catch((err: unknown) => {
      if (!this.#closing.signal.aborted)
        log.error({ err, runId: this.#state.id }, 'failed to terminate a run after its final event')
    })
  }

  async #terminateOnce(): Promise<void> {
    const { detachedProcess, processes, provider, log } = this.#options
    const { signal } = this.#closing
    if (detachedProcess.exit !== null || signal.aborted || this.#record.current.interrupt !== null) return
    if (this.#record.current.conclusion === null) {
      const conclusion = findOutcome(this.follower.position.state) ?? NO_RESULT
      log.info({ runId: this.#state.id }, 'a coding agent did not exit after its final event; terminating it')
      await this.#record.update({ conclusion })
    }
    await interruptProcess(processes, detachedProcess, { first: provider.interruptSignal, signal })
  }

  async #waitForEnd(): Promise<RunRecord | null> {
    const { detachedProcess, log } = this.#options
    const { signal } = this.#closing
    let isOutputLost = false
    await this.follower.finished.catch((err: unknown) => {
      // For example, the log was deleted. The events so far count, and the exit status decides.
      isOutputLost = true
      log.error({ err, runId: this.#state.id }, 'failed to read the output of a run')
      return waitForExit(detachedProcess, null, signal)
    })
    this.#stopGrace()
    const { exit } = detachedProcess
    if (exit === null || signal.aborted) return null
    const { position: read } = this.follower
    const position = isOutputLost ? { ...read, state: { ...read.state, isLastLineOmitted: true } } : read
    const record = this.#record.current
    const result = await finishRun({ ...this.#options, record, exit, position }, signal)
    if (result === null) return null
    await this.#record.update({ result })
    return this.#record.current
  }

  async #interruptOnce(cause: string): Promise<InterruptSignal | null> {
    const { detachedProcess, processes, provider, clock } = this.#options
    const { signal } = this.#closing
    if (detachedProcess.exit === null && this.#record.current.interrupt === null)
      await this.#record.update({ interrupt: { requestedAt: clock.now(), cause } })
    const sent = await interruptProcess(processes, detachedProcess, {
      first: provider.interruptSignal,
      signal,
    })
    if ((await this.ended) === null) throw signal.reason
    return sent
  }
}
