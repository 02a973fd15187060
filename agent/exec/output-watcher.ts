// Waits for new output or the exit of a detached process. Shared by event streams and the command history.
import type { DetachedProcess, StreamName } from './detached/types.ts'

export type OutputWatcher = {
  /**
   * Resolves with true after output was written or the process exited, with false after `ms` or close(). The first call
   * resolves immediately, since output may have been written before the watch began. One call at a time.
   */
  waitForChange(ms?: number): Promise<boolean>
  close(): void
}

export type Timer = {
  /** Calls back once after `ms`. Returns the cancel function. */
  after(ms: number, callback: () => void): () => void
}

export const systemTimer: Timer = {
  after(ms, callback) {
    const timer = setTimeout(callback, ms)
    return () => clearTimeout(timer)
  },
}

/**
 * Watches the logs only while the caller keeps up: when a second change arrives before the caller waits again, the watch
 * ends until the next call. A caller that stalls, or throttles itself, costs nothing while the process keeps writing.
 */
export function createOutputWatcher(
  detachedProcess: DetachedProcess,
  streams: readonly StreamName[],
  timer: Timer = systemTimer,
): OutputWatcher {
  let stopWatching: (() => void) | undefined
  let changed = false
  let closed = false
  let wake: (() => void) | undefined

  const onChange = () => {
    if (changed) {
      stopWatching?.()
      stopWatching = undefined
    }
    changed = true
    wake?.()
  }
  const watch = () => {
    const stops = streams.map((name) => detachedProcess.logs[name].watch(onChange))
    stopWatching = () => {
      for (const stop of stops) stop()
    }
  }
  const unsubscribeExit = detachedProcess.onExit(onChange)

  return {
    async waitForChange(ms) {
      if (closed) return false
      if (stopWatching === undefined) {
        watch()
        changed = false
        return true
      }
      if (!changed) {
        const { promise, resolve } = Promise.withResolvers<void>()
        wake = resolve
        const cancelTimer = ms === undefined ? undefined : timer.after(ms, resolve)
        await promise
        cancelTimer?.()
        wake = undefined
      }
      const result = changed
      changed = false
      return result
    },
    close() {
      closed = true
      unsubscribeExit()
      stopWatching?.()
      stopWatching = undefined
      wake?.()
    },
  }
}
