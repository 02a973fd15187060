// Reads the status and the events of the runs in the table, and waits for events.
import { join } from 'node:path'
import type { PromptEvents, PromptStatus, ProviderName, Run } from '../../../shared/api/prompts.ts'
import type { DetachedProcesses } from '../../exec/detached/types.ts'
import type { Provider } from '../providers/types.ts'
import type { ReadEventsOptions } from '../types.ts'
import { toRun } from './run-fields.ts'
import { type RunOutput, readRunEvents, readRunStatus } from './run-output.ts'
import { toProcessId } from './run-record.ts'
import type { RunEntry, RunTable } from './run-table.ts'

export type RunReaderOptions = {
  table: RunTable
  runsDir: string
  processes: Pick<DetachedProcesses, 'get'>
  providers: Record<ProviderName, Provider>
  /** Aborts when the agent stops. */
  closing: AbortSignal
}

export class RunReader {
  readonly #options: RunReaderOptions

  constructor(options: RunReaderOptions) {
    this.#options = options
  }

  /** @throws ApiError not_found */
  async readStatus(id: string): Promise<PromptStatus> {
    const entry = this.#options.table.get(id)
    return readRunStatus(entry.state, this.#getOutput(entry))
  }

  /** Waits up to `waitMs` for an event after `after`, or the end of the run. @throws ApiError not_found */
  async readEvents(id: string, options: ReadEventsOptions): Promise<PromptEvents & { run: Run }> {
    const { table, closing } = this.#options
    const { after, limit, waitMs, signal } = options
    const deadline = performance.now() + waitMs
    for (;;) {
      // The run may end while the page is read. The next iteration then reads the new entry.
      const entry = table.get(id)
      const { state, active, changes } = entry
      const seen = changes.version()
      const { events, next, reachedEnd } = await readRunEvents(this.#getOutput(entry), {
        after,
        limit,
        signal,
      })
      const finished = active === null && reachedEnd
      const remainingMs = deadline - performance.now()
      const mustReturn = next > after || finished || remainingMs <= 0
      if (mustReturn || signal.aborted || closing.aborted)
        return { ok: true, type: 'prompt.events', run: toRun(state), events, next, finished }
      await changes.wait(seen, remainingMs, [signal, closing])
    }
  }

  #getOutput({ record, active }: RunEntry): RunOutput {
    const { runsDir, processes, providers } = this.#options
    return {
      runDir: join(runsDir, record.id),
      provider: providers[record.provider],
      detachedProcess: processes.get(toProcessId(record.id)),
      follower: active?.follower ?? null,
      record,
    }
  }
}
