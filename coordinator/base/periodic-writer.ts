// Writes what is recorded in memory at an interval, one write at a time.
import type { Logger } from 'pino'

export type PeriodicWriter = {
  /** Writes now, after the write in progress. */
  flush(): Promise<void>
  /** Stops the timer and writes what remains. */
  close(): Promise<void>
}

export type PeriodicWriterOptions = {
  intervalMs: number
  write(): Promise<void>
  log: Pick<Logger, 'error'>
  /** Completes "failed to write …" in the log. */
  subject: string
}

export function createPeriodicWriter(options: PeriodicWriterOptions): PeriodicWriter {
  const { intervalMs, write, log, subject } = options
  let flushing = Promise.resolve()

  function flush(): Promise<void> {
    flushing = flushing.catch(() => undefined).then(write)
    return flushing
  }

  const timer = setInterval(() => {
    flush().catch((err: unknown) => log.error({ err }, `failed to write ${subject}; will retry`))
  }, intervalMs)
  timer.unref()

  return {
    flush,
    async close() {
      clearInterval(timer)
      await flush()
    },
  }
}
