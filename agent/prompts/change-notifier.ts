// Wakes waiting requests after each change, without polling.
import { boundedWait } from './bounded-wait.ts'

export type ChangeNotifier = {
  /** Increases with each change. Read before the state that is checked, so that no change is missed. */
  version(): number
  notify(): void
  /** Resolves when the version differs from `seen`, after `ms`, or when a signal aborts. */
  wait(seen: number, ms: number | null, signals: readonly AbortSignal[]): Promise<void>
}

export function createChangeNotifier(): ChangeNotifier {
  let version = 0
  let next = Promise.withResolvers<void>()
  return {
    version: () => version,
    notify() {
      version += 1
      next.resolve()
      next = Promise.withResolvers()
    },
    async wait(seen, ms, signals) {
      if (seen === version) await boundedWait(next.promise, ms, signals)
    },
  }
}
