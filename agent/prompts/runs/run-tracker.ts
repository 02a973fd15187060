// Follows the runs in progress, and updates the table of runs until each run has ended.
import { join } from 'node:path'
import type { Logger } from 'pino'
import type { ProviderName } from '../../../shared/api/prompts.ts'
import type { Clock } from '../../../shared/clock.ts'
import type { DetachedProcess, DetachedProcesses } from '../../exec/detached/types.ts'
import type { StartTimer } from '../../running-clock.ts'
import type { FollowerStart } from '../events/log-follower.ts'
import type { Provider } from '../providers/types.ts'
import { ActiveRun } from './active-run.ts'
import type { BackgroundTasks } from './background-tasks.ts'
import { toRunState } from './run-fields.ts'
import type { RunRecord } from './run-record.ts'
import type { RunTable } from './run-table.ts'

export type RunTrackerOptions = {
  table: RunTable
  background: BackgroundTasks
  runsDir: string
  processes: DetachedProcesses
  providers: Record<ProviderName, Provider>
  checkpointBytes: number
  clock: Clock
  startTimer: StartTimer
  log: Logger
  /** Called after each end of a run. */
  onEnd(): void
}

export type TrackedRun = {
  record: RunRecord
  detachedProcess: DetachedProcess
  start: FollowerStart
  getStopRequestedAt: () => number | null
}

export class RunTracker {
  readonly #options: RunTrackerOptions

  constructor(options: RunTrackerOptions) {
    this.#options = options
  }

  /** Adds the run to the table. Resolves when the run has ended, or after close(). */
  track({ record, detachedProcess, start, getStopRequestedAt }: TrackedRun): Promise<unknown> {
    const { table, background, runsDir, processes, providers, checkpointBytes, clock, startTimer, log } =
      this.#options
    const { id } = record
    const active = new ActiveRun({
      record,
      runDir: join(runsDir, id),
      detachedProcess,
      processes,
      provider: providers[record.provider],
      start,
      checkpointBytes,
      getStopRequestedAt,
      clock,
      startTimer,
      log,
      onChange: (state) => table.update(id, { state }),
    })
    table.add(record, active)
    const ended = this.#recordEnd(active)
    background.add(ended, 'failed to follow a run')
    return ended
  }

  async #recordEnd(active: ActiveRun): Promise<void> {
    const { table, onEnd } = this.#options
    const record = await active.ended
    if (record === null) return
    table.update(record.id, { record, state: toRunState(record), active: null })
    onEnd()
  }

  /** The CLIs keep running. */
  async close(): Promise<void> {
    await Promise.all(this.#options.table.list().map(({ active }) => active?.close()))
  }
}
