// Runs work that a response does not wait for.
import { setImmediate } from 'node:timers/promises'
import type { Logger } from 'pino'

export type BackgroundTasks = {
  /**
   * Starts the task after the current response has been sent. Logs an error.
   * @param name completes "failed to …"
   */
  run(name: string, task: () => Promise<unknown>): void
  /** Resolves when the tasks that run are complete. */
  close(): Promise<void>
}

export function createBackgroundTasks(log: Pick<Logger, 'error'>): BackgroundTasks {
  const running = new Set<Promise<void>>()

  async function runTask(name: string, task: () => Promise<unknown>): Promise<void> {
    await setImmediate()
    try {
      await task()
    } catch (err) {
      log.error({ err }, `failed to ${name}`)
    }
  }

  return {
    run(name, task) {
      const promise = runTask(name, task).finally(() => running.delete(promise))
      running.add(promise)
    },
    async close() {
      await Promise.all(running)
    },
  }
}
