// A single timer that fires at the earliest of the scheduled times.
import type { Clock } from '../../shared/clock.ts'

/** The longest timeout. setTimeout accepts at most 2^31 - 1 ms, and the clock may be set while a timeout is pending. */
const MAX_TIMEOUT_MS = 60_000

/**
 * Calls `onDue` at the earliest time scheduled since the last call. For a time more than 60 s away, the call is early:
 * `onDue` must then schedule the time again.
 */
export function createDueTimer(clock: Clock, onDue: () => Promise<void>, onError: (error: unknown) => void) {
  let timeout: NodeJS.Timeout | undefined
  let earliest = Number.POSITIVE_INFINITY
  let closed = false

  /** `time` is in milliseconds since the epoch. */
  function scheduleAt(time: number): void {
    if (!closed && time < earliest) setTimer(time, Math.min(MAX_TIMEOUT_MS, Math.max(0, time - clock.now())))
  }

  /** Calls `onDue` at once, whatever time is scheduled: after the clock has been set, that time may have passed already. */
  function runNow(): void {
    if (!closed) setTimer(Number.NEGATIVE_INFINITY, 0)
  }

  function setTimer(time: number, ms: number): void {
    earliest = time
    clearTimeout(timeout)
    timeout = setTimeout(onTimeout, ms)
    timeout.unref()
  }

  function onTimeout(): void {
    earliest = Number.POSITIVE_INFINITY
    onDue().catch(onError)
  }

  function close(): void {
    closed = true
    clearTimeout(timeout)
  }

  return { scheduleAt, runNow, close }
}
