// Limits the number of tasks of the archive store that run at the same time, and stops them when the store is closed.
import { availableParallelism } from 'node:os'
import pLimit from 'p-limit'
import { runInTurn } from '../run-in-turn.ts'

/** Each task keeps about one core busy. The others wait. */
const MAX_CONCURRENT_TASKS = Math.max(2, availableParallelism())

export class TaskQueue {
  readonly #limit = pLimit(MAX_CONCURRENT_TASKS)
  readonly #closing = new AbortController()
  readonly #running = new Set<Promise<unknown>>()

  get isClosed(): boolean {
    return this.#closing.signal.aborted
  }

  /** Runs the work when there is a slot. */
  run<T>(signal: AbortSignal, work: () => Promise<T>): Promise<T> {
    return runInTurn(this.#limit, signal, work)
  }

  /** Returns a signal that is also aborted by close(). */
  withClosing(signal?: AbortSignal): AbortSignal {
    return signal === undefined ? this.#closing.signal : AbortSignal.any([signal, this.#closing.signal])
  }

  /** close() waits for the work. */
  track<T>(work: Promise<T>): Promise<T> {
    this.#running.add(work)
    const remove = () => this.#running.delete(work)
    work.then(remove, remove)
    return work
  }

  async close(): Promise<void> {
    this.#closing.abort(new Error('The coordinator is shutting down.'))
    while (this.#running.size > 0) await Promise.allSettled(this.#running)
  }
}
