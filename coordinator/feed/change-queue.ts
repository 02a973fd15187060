// Collects changed rows, and passes them on in batches: at once after a pause, else every 100 ms.
import type { RowChange } from '../db/row-changes.ts'

/** The time between two batches. A box that is created changes about ten times in a second. */
const INTERVAL_MS = 100

export class ChangeQueue {
  readonly #flush: (changes: readonly RowChange[]) => Promise<void>
  readonly #intervalMs: number
  /** The latest change of each row, by table and id. */
  readonly #changes = new Map<string, RowChange>()
  #timer: NodeJS.Timeout | undefined
  #isFlushing = false
  #flushedAt = Number.NEGATIVE_INFINITY

  /** @param flush is called again only after it has resolved. It does not reject */
  constructor(flush: (changes: readonly RowChange[]) => Promise<void>, intervalMs = INTERVAL_MS) {
    this.#flush = flush
    this.#intervalMs = intervalMs
  }

  add(change: RowChange): void {
    this.#changes.set(`${change.table} ${change.id}`, change)
    this.#arm()
  }

  close(): void {
    clearTimeout(this.#timer)
    this.#changes.clear()
  }

  #arm(): void {
    if (this.#isFlushing || this.#timer !== undefined || this.#changes.size === 0) return
    const delayMs = Math.max(0, this.#flushedAt + this.#intervalMs - performance.now())
    this.#timer = setTimeout(() => void this.#run(), delayMs).unref()
  }

  async #run(): Promise<void> {
    this.#timer = undefined
    this.#isFlushing = true
    this.#flushedAt = performance.now()
    const changes = [...this.#changes.values()]
    this.#changes.clear()
    await this.#flush(changes)
    this.#isFlushing = false
    this.#arm()
  }
}
