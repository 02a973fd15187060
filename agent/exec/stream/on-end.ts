// Tells many readers of a process's end, and can be told to forget one: a promise cannot.
import type { DetachedProcess } from '../detached/types.ts'

const listeners = new WeakMap<DetachedProcess, Set<() => void>>()

/** Calls back once when the process ends, never if it has already. Returns what prevents that. */
export function onEnd(process: DetachedProcess, callback: () => void): () => void {
  const waiting = listeners.get(process) ?? listen(process)
  waiting.add(callback)
  return () => waiting.delete(callback)
}

function listen(process: DetachedProcess): Set<() => void> {
  const waiting = new Set<() => void>()
  listeners.set(process, waiting)
  void process.ended.then(() => {
    for (const callback of waiting) callback()
    waiting.clear()
  })
  return waiting
}
