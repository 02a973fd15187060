// Work that no caller waits for: errors are logged, and the shutdown waits for the work.
import type { Logger } from 'pino'

export class BackgroundTasks {
  readonly #log: Logger
  readonly #running = new Set<Promise<void>>()

  constructor(log: Logger) {
    this.#log = log
  }

  /** @param message logged with the error when the work fails */
  add(work: Promise<unknown>, message: string): void {
    const done = work
      .then(
        () => undefined,
        (err: unknown) => this.#log.error({ err }, message),
      )
      .finally(() => this.#running.delete(done))
    this.#running.add(done)
  }

  /** Resolves when the work that has been added so far has ended. */
  async settle(): Promise<void> {
    await Promise.all(this.#running)
  }
}
