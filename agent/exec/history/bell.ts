// When to look at a detached process again.
import type { DetachedProcess, StreamName } from '../detached/types.ts'

const STREAMS: readonly StreamName[] = ['stdout', 'stderr']

/** Rings when the process wrote something, when it ended, and when following it ends. */
export function createBell(process: DetachedProcess, signal: AbortSignal) {
  let ringing = false
  let over = process.end !== null || signal.aborted
  let resume: (() => void) | undefined
  let hurry: (() => void) | undefined
  const ring = () => {
    ringing = true
    resume?.()
  }
  const finish = () => {
    over = true
    ring()
    hurry?.()
  }
  const watches = process.record?.keepOutput ? STREAMS.map((stream) => process.logs[stream].watch(ring)) : []
  void process.ended.then(finish)
  signal.addEventListener('abort', finish, { once: true })

  return {
    async rung(): Promise<void> {
      if (!ringing && !over) await new Promise<void>((resolve) => (resume = resolve))
      ringing = false
    },
    /** Cut short when the process ends. */
    async pause(ms: number): Promise<void> {
      if (over) return
      let timer: NodeJS.Timeout | undefined
      await new Promise<void>((resolve) => {
        hurry = resolve
        timer = setTimeout(resolve, ms)
      })
      clearTimeout(timer)
    },
    close(): void {
      for (const stopWatching of watches) stopWatching()
      signal.removeEventListener('abort', finish)
    },
  }
}
