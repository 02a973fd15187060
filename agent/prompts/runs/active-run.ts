// One run in progress: follows its output, interrupts it, and records how it ended.
import type { Logger } from 'pino'
import type { Clock } from '../../../shared/clock.ts'
import { ApiError } from '../../../shared/errors.ts'
import type { DetachedProcess, DetachedProcesses } from '../../exec/detached/types.ts'
import { type FollowerStart, followLog, type LogFollower } from '../events/log-follower.ts'
import type { Provider } from '../providers/types.ts'
import type { RunState } from '../types.ts'
import { finishRun } from './finish-run.ts'
import { type InterruptSignal, interruptProcess, waitForExit } from './interrupt-process.ts'
import { toRunState } from './run-fields.ts'
import type { RunRecord } from './run-record.ts'
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
  log: Logger
  /** Called after each change of `state` until the run ends. */
  onChange(state: RunState): void
}

export class ActiveRun {
  readonly follower: LogFollower
  /** Resolves with the record when the run has ended and the record is durable; with null after close(). */
  readonly ended: Promise<RunRecord | null>
  readonly #options: ActiveRunOptions
  readonly #record: StoredRecord
  readonly #closing = new AbortController()
  #state: RunState
  #interruption: Promise<InterruptSignal | null> | undefined

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
    this.follower.close()
    await Promise.allSettled([this.ended, this.#interruption])
    await this.#record.settle()
  }

  #updateState(): void {
    const { seq, state } = this.follower.position
    if (seq === this.#state.eventCount && state.sessionId === this.#state.sessionId) return
    this.#state = { ...this.#state, eventCount: seq, sessionId: state.sessionId }
    this.#options.onChange(this.#state)
  }

  async #waitForEnd(): Promise<RunRecord | null> {
    const { detachedProcess, log } = this.#options
    const { signal } = this.#closing
    await this.follower.finished.catch((err: unknown) => {
      // For example, the log was deleted. The events so far count.
      log.error({ err, runId: this.#state.id }, 'failed to read the output of a run')
      return waitForExit(detachedProcess, null, signal)
    })
    const { exit } = detachedProcess
    if (exit === null || signal.aborted) return null
    const { position } = this.follower
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
