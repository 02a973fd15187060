// Tracks how long the box has been idle: requests, running operations and watched conditions reset the idle time.
import type { Clock } from '../shared/clock.ts'

export type ActivityTracker = {
  /** Records a request. */
  touch(): void
  /** Marks the box busy until the returned function is called. Calling that function again has no effect. */
  startOperation(): () => void
  /** The box is busy while `isActive` returns true. Returns the function that ends the watch. */
  watch(isActive: () => boolean): () => void
  /** Whole seconds since the last request or finished operation; 0 while the box is busy. */
  idleSeconds(): number
}

/** @param clock one that is never set, and that stands still while the box is frozen: the idle time must not jump */
export function createActivityTracker(clock: Clock): ActivityTracker {
  let runningOperations = 0
  let lastActiveAt = clock.now()
  const watches = new Set<() => boolean>()
  const touch = () => {
    lastActiveAt = clock.now()
  }
  return {
    touch,
    startOperation() {
      let finished = false
      runningOperations++
      return () => {
        if (finished) return
        finished = true
        runningOperations--
        touch()
      }
    },
    watch(isActive) {
      watches.add(isActive)
      return () => void watches.delete(isActive)
    },
    idleSeconds() {
      if (runningOperations > 0 || [...watches].some((isActive) => isActive())) touch()
      return Math.floor((clock.now() - lastActiveAt) / 1000)
    },
  }
}
