// One timer for the earliest of many instants.
import type { Clock } from '../../shared/clock.ts'

/** A wait beyond this is cut in two: timers take 32-bit milliseconds, and the clock may be set meanwhile. */
const LONGEST_MS = 60_000

/** Calls `fire` at the earliest instant told since it fired last. One call at a time. */
export function createDueTimer(clock: Clock, fire: () => Promise<void>, onError: (error: unknown) => void) {
  let timeout: NodeJS.Timeout | undefined
  let earliest = Number.POSITIVE_INFINITY
  let closed = false

  function dueAt(instant: number): void {
    if (closed || instant >= earliest) return
    earliest = instant
    clearTimeout(timeout)
    timeout = setTimeout(ring, Math.min(LONGEST_MS, Math.max(0, instant - clock.now())))
    timeout.unref()
  }

  function ring(): void {
    earliest = Number.POSITIVE_INFINITY
    fire().catch(onError)
  }

  function close(): void {
    closed = true
    clearTimeout(timeout)
  }

  return { dueAt, close }
}
