// Deletes ended runs: on request, and those beyond the retention limits.
import { join } from 'node:path'
import type { Clock } from '../../../shared/clock.ts'
import { removeDirectory } from '../../exec/detached/record.ts'
import type { Retention } from '../../exec/detached/retention.ts'
import type { DetachedProcesses } from '../../exec/detached/types.ts'
import type { BackgroundTasks } from './background-tasks.ts'
import { toProcessId } from './run-record.ts'
import { findExpiredRuns } from './run-retention.ts'
import type { RunTable } from './run-table.ts'

const PRUNE_MS = 60 * 60 * 1000

export type RunRemoverOptions = {
  table: RunTable
  background: BackgroundTasks
  runsDir: string
  processes: Pick<DetachedProcesses, 'remove'>
  retention: Retention
  clock: Clock
}

export class RunRemover {
  readonly #options: RunRemoverOptions
  #timer: NodeJS.Timeout | undefined

  constructor(options: RunRemoverOptions) {
    this.#options = options
  }

  /** Prunes now and at intervals. */
  start(): void {
    this.prune()
    this.#timer = setInterval(() => this.prune(), PRUNE_MS).unref()
  }

  /** Deletes the runs beyond the retention limits in the background. */
  prune(): void {
    const { table, background, clock, retention } = this.#options
    const records = table.list().map(({ record }) => record)
    for (const id of findExpiredRuns(records, clock.now(), retention))
      background.add(this.remove(id), 'failed to delete a run')
  }

  /** Does nothing while the run is in progress. */
  async remove(id: string): Promise<void> {
    const { table, runsDir, processes } = this.#options
    const entry = table.find(id)
    if (entry === undefined || entry.active !== null) return
    table.delete(id)
    // restoreRecords() removes a process without a run.
    await removeDirectory(join(runsDir, id))
    await processes.remove(toProcessId(id))
  }

  close(): void {
    clearInterval(this.#timer)
  }
}
