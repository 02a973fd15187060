// Tracks how long the box has been idle: requests and running operations reset the idle time.
import type { Clock } from '../../shared/clock.ts'

export type ActivityTracker = {
  /** Records a request. */
  touch(): void
  /** Marks the box busy until the returned function is called. Calling that function again has no effect. */
  startOperation(): () => void
  /** Whole seconds since the last request or finished operation; 0 while an operation runs. */
  idleSeconds(): number
}

export function createActivityTracker(clock: Clock): ActivityTracker {
  let runningOperations = 0
  let lastActiveAt = clock.now()
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
    // Clamped: the difference is negative after the clock was set back.
    idleSeconds: () =>
      runningOperations > 0 ? 0 : Math.max(0, Math.floor((clock.now() - lastActiveAt) / 1000)),
  }
}
