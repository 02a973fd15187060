// Runs the deliveries of each workspace one at a time, and schedules their retries.
import type { SetTimer } from './timers.ts'

export type WorkspaceRunsOptions = {
  /** Returns whether there may be more to do now. A rejection ends the run: see onError. */
  run(workspaceId: string): Promise<boolean>
  onError(error: unknown, workspaceId: string): void
  setTimer: SetTimer
  /** Ends the runs. */
  closing: AbortSignal
}

type Run = { done: Promise<void>; isRequested: boolean }

export class WorkspaceRuns {
  readonly #options: WorkspaceRunsOptions
  readonly #active = new Map<string, Run>()
  /** Functions that cancel the timers of the next attempts. */
  readonly #retries = new Map<string, () => void>()

  constructor(options: WorkspaceRunsOptions) {
    this.#options = options
  }

  /** Runs now, or once more after the current run. No-op while a retry is scheduled. */
  request(workspaceId: string): void {
    if (this.#options.closing.aborted || this.#retries.has(workspaceId)) return
    const current = this.#active.get(workspaceId)
    if (current) {
      current.isRequested = true
      return
    }
    const run: Run = { done: Promise.resolve(), isRequested: true }
    this.#active.set(workspaceId, run)
    run.done = this.#repeat(workspaceId, run)
      .catch((error: unknown) => this.#options.onError(error, workspaceId))
      .finally(() => {
        this.#active.delete(workspaceId)
        if (run.isRequested) this.request(workspaceId)
      })
  }

  /** Replaces the scheduled retry. */
  retryIn(workspaceId: string, ms: number): void {
    if (this.#options.closing.aborted) return
    this.cancelRetry(workspaceId)
    const onTimer = () => {
      this.#retries.delete(workspaceId)
      this.request(workspaceId)
    }
    this.#retries.set(workspaceId, this.#options.setTimer(onTimer, ms))
  }

  cancelRetry(workspaceId: string): void {
    this.#retries.get(workspaceId)?.()
    this.#retries.delete(workspaceId)
  }

  /** Call it after `closing` has been aborted. */
  async close(): Promise<void> {
    for (const workspaceId of [...this.#retries.keys()]) this.cancelRetry(workspaceId)
    await Promise.all([...this.#active.values()].map(({ done }) => done))
  }

  async #repeat(workspaceId: string, run: Run): Promise<void> {
    while (run.isRequested && !this.#options.closing.aborted) {
      run.isRequested = false
      if (await this.#options.run(workspaceId)) run.isRequested = true
    }
  }
}
