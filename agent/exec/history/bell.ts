// When to look at a detached process again.
import { type DetachedProcess, STREAMS, type StreamName } from '../detached/types.ts'

/** Its logs are watched only while someone waits for them: a process that writes all the time costs nothing in between. */
export function createBell(process: DetachedProcess, signal: AbortSignal) {
  const { logs, record } = process
  let over = process.end !== null || signal.aborted
  let wake: (() => void) | undefined
  const finish = () => {
    over = true
    wake?.()
  }
  void process.ended.then(finish)
  signal.addEventListener('abort', finish, { once: true })

  return {
    /** Resolves when there is output behind these offsets, when the process ended, and when following it ends. */
    async rung(told: Readonly<Record<StreamName, number>>): Promise<void> {
      const { promise, resolve } = Promise.withResolvers<void>()
      wake = resolve
      const watched = record?.keepOutput ? STREAMS : []
      const stops = watched.map((stream) => logs[stream].watch(resolve))
      try {
        const sizes = await Promise.all(watched.map((stream) => logs[stream].size()))
        const news = watched.some((stream, index) => (sizes[index] ?? 0) > told[stream])
        if (!news && !over) await promise
      } finally {
        for (const stop of stops) stop()
      }
    },
    /** Cut short when the process ends. */
    async pause(ms: number): Promise<void> {
      if (over || ms <= 0) return
      const { promise, resolve } = Promise.withResolvers<void>()
      wake = resolve
      const timer = setTimeout(resolve, ms)
      await promise
      clearTimeout(timer)
    },
    close(): void {
      signal.removeEventListener('abort', finish)
    },
  }
}
