// The runs of a box in memory, and the notification of their changes. The state directory is the source of truth.
import type { Logger } from 'pino'
import { ApiError } from '../../../shared/errors.ts'
import { type ChangeNotifier, createChangeNotifier } from '../change-notifier.ts'
import type { RunState } from '../types.ts'
import type { ActiveRun } from './active-run.ts'
import { toRunState } from './run-fields.ts'
import type { RunRecord } from './run-record.ts'

export type RunEntry = {
  readonly record: RunRecord
  readonly state: RunState
  /** null when the run has ended. */
  readonly active: ActiveRun | null
  /** Notified after each change of the state. */
  readonly changes: ChangeNotifier
}

export class RunTable {
  readonly #log: Logger
  /** Oldest first. */
  readonly #entries = new Map<string, RunEntry>()
  readonly #subscribers = new Set<(run: RunState) => void>()

  constructor(log: Logger) {
    this.#log = log
  }

  find(id: string): RunEntry | undefined {
    return this.#entries.get(id)
  }

  /** @throws ApiError not_found */
  get(id: string): RunEntry {
    const entry = this.#entries.get(id)
    if (entry === undefined) throw new ApiError('not_found', `Run ${id} not found. Check the id.`)
    return entry
  }

  /** Oldest first. */
  list(): RunEntry[] {
    return [...this.#entries.values()]
  }

  /** Does not notify the subscribers. @param active null: the run has ended */
  add(record: RunRecord, active: ActiveRun | null): void {
    const state = active?.state ?? toRunState(record)
    this.#entries.set(record.id, { record, state, active, changes: createChangeNotifier() })
  }

  /** Changes the entry, if the run is in the table, and notifies the subscribers. */
  update(id: string, change: Partial<Omit<RunEntry, 'changes'>>): void {
    const entry = this.#entries.get(id)
    if (entry === undefined) return
    this.#entries.set(id, { ...entry, ...change })
    this.publish(id)
  }

  delete(id: string): void {
    this.#entries.delete(id)
  }

  /** Notifies the subscribers, and the readers that wait for a change of the run. @throws ApiError not_found */
  publish(id: string): RunState {
    const { state, changes } = this.get(id)
    changes.notify()
    for (const callback of [...this.#subscribers]) {
      try {
        callback(state)
      } catch (err) {
        // A failing subscriber must not affect the run.
        this.#log.error({ err, runId: id }, 'a subscriber of runs failed')
      }
    }
    return state
  }

  /** Returns the unsubscribe function. */
  subscribe(callback: (run: RunState) => void): () => void {
    this.#subscribers.add(callback)
    return () => void this.#subscribers.delete(callback)
  }
}
