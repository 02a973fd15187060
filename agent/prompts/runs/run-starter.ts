// Starts runs, and records runs that could not start. Idempotent by the id of the run.
import { join } from 'node:path'
import type { ProviderName } from '../../../shared/api/prompts.ts'
import type { Clock } from '../../../shared/clock.ts'
import type { DetachedProcesses } from '../../exec/detached/types.ts'
import type { Provider } from '../providers/types.ts'
import type { ProviderDetector, RunState, StartRunOptions, UnstartedResult } from '../types.ts'
import { type PreparedCommand, prepareCommand, startCommand, writeUnstartedRun } from './run-command.ts'
import { createOrigin, createRunRecord, type RunRecord, withUnstartedResult } from './run-record.ts'
import type { RunRemover } from './run-remover.ts'
import type { RunSequence } from './run-sequence.ts'
import type { RunTable } from './run-table.ts'
import type { RunTracker } from './run-tracker.ts'
import type { StopRecord } from './stop-record.ts'

export type RunStarterOptions = {
  table: RunTable
  sequence: RunSequence
  tracker: RunTracker
  remover: RunRemover
  stop: StopRecord
  runsDir: string
  processes: DetachedProcesses
  providers: Record<ProviderName, Provider>
  detector: ProviderDetector
  clock: Clock
  /** The time limit of a run. */
  minutes: number
  /** Aborts when the agent stops. */
  closing: AbortSignal
}

type UnstartedRequest = Omit<StartRunOptions, 'boxEnv'>

export class RunStarter {
  readonly #options: RunStarterOptions
  readonly #starting = new Map<string, Promise<RunState>>()
  /** The starts whose CLI has been found. */
  readonly #launches = new Set<Promise<unknown>>()

  constructor(options: RunStarterOptions) {
    this.#options = options
  }

  start(request: StartRunOptions, signal: AbortSignal | undefined): Promise<RunState> {
    return this.#once(request.id, () => this.#start(request, signal))
  }

  recordUnstarted(request: UnstartedRequest, result: UnstartedResult): Promise<RunState> {
    return this.#once(request.id, () => this.#recordUnstarted(request, result))
  }

  /** Resolves when no start of the run is in progress. A failed start is reported to the caller of start(). */
  async waitForStart(id: string): Promise<void> {
    await this.#starting.get(id)?.catch(() => undefined)
  }

  /** Waits for the starts whose CLI has been found. */
  async close(): Promise<void> {
    await Promise.allSettled(this.#launches)
  }

  #once(id: string, start: () => Promise<RunState>): Promise<RunState> {
    const { table, closing } = this.#options
    const known = table.find(id)?.state ?? this.#starting.get(id)
    if (known !== undefined) return Promise.resolve(known)
    if (closing.aborted) return Promise.reject(closing.reason)
    const started = start().finally(() => this.#starting.delete(id))
    this.#starting.set(id, started)
    return started
  }

  async #start(request: StartRunOptions, signal: AbortSignal | undefined): Promise<RunState> {
    const { table, sequence, runsDir, providers, detector, closing } = this.#options
    const signals = signal === undefined ? [closing] : [signal, closing]
    const provider = providers[request.provider]
    const runDir = join(runsDir, request.id)
    const command = await prepareCommand({ provider, detector, signals }, runDir, request)
    const record = this.#createRecord(request)
    const launched = this.#launch(record, request.prompt, command).finally(() => {
      this.#launches.delete(launched)
      sequence.settle(record.sequence)
    })
    this.#launches.add(launched)
    await launched
    return table.publish(request.id)
  }

  async #launch(record: RunRecord, prompt: string, command: PreparedCommand): Promise<void> {
    const { processes, runsDir, tracker, stop } = this.#options
    const detachedProcess = await startCommand(processes, join(runsDir, record.id), {
      record,
      prompt,
      command,
    })
    void tracker.track({
      record,
      detachedProcess,
      start: { position: createOrigin(record), checkpoints: [], exactFrom: 0 },
      getStopRequestedAt: () => stop.requestedAt,
    })
  }

  async #recordUnstarted(request: UnstartedRequest, result: UnstartedResult): Promise<RunState> {
    const { table, sequence, remover, runsDir } = this.#options
    const record = withUnstartedResult(this.#createRecord(request), result)
    try {
      await writeUnstartedRun(join(runsDir, record.id), { record, prompt: request.prompt })
      table.add(record, null)
    } finally {
      sequence.settle(record.sequence)
    }
    const state = table.publish(record.id)
    remover.prune()
    return state
  }

  #createRecord(request: UnstartedRequest): RunRecord {
    const { clock, minutes, sequence } = this.#options
    const startedAt = clock.now()
    return createRunRecord(request, { minutes, startedAt, sequence: sequence.next(startedAt) })
  }
}
